//go:build !unix

package files

// nonblock is nothing here: no name in a folder is a pipe that opening would wait for.
const nonblock = 0
