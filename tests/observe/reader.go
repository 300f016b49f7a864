// Reads by Go's own system calls: in a row, at a place, in a row again. It needs the smallest of Go's packages alone.
package main

import "syscall"

func need(got int, err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	fd, err := syscall.Open("data", syscall.O_RDONLY, 0)
	need(fd, err)
	buffer := make([]byte, 8192)
	need(syscall.Read(fd, buffer[:1000]))
	need(syscall.Pread(fd, buffer[:50], 5000))
	need(syscall.Read(fd, buffer))
}
