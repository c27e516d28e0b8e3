// Package files shares one file or folder at a time over HTTP.
package files
