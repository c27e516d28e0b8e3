package main

import "os"

// makeWay moves a running program aside: it cannot be replaced, but renamed. The
// next install removes it.
func makeWay(path string) {
	_ = os.Remove(path + ".old")
	_ = os.Rename(path, path+".old")
}
