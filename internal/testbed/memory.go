package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// sharedMemory is Linux's file system in memory.
	sharedMemory = "/dev/shm"
	// memoryNeeded is how many bytes must be free there. All tests together take a third.
	memoryNeeded = 6 << 30
)

// useMemory puts temporary files into memory if there is room, and returns the function that
// removes them. Tests create and drop thousands of databases, and a new file costs up to 10 times
// as much on a disk. A folder in TMPDIR is used as it is.
//
// The folder's name is always the same, so that Go's test cache works. Two testbeds at a time do
// not share it.
func useMemory() (remove func(), err error) {
	none := func() {}
	if os.Getenv("TMPDIR") != "" || freeIn(sharedMemory) < memoryNeeded {
		return none, nil
	}
	folder := filepath.Join(sharedMemory, fmt.Sprintf("sluice-tests-%d", os.Getuid()))
	lock, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return none, fmt.Errorf("keep temporary files in memory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return none, lock.Close() // another testbed uses the folder
	}
	remove = func() {
		_ = os.RemoveAll(folder)
		_ = lock.Close()
	}
	// A killed testbed may have left files behind. The server's user must be able to enter the
	// folder.
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755), os.Setenv("TMPDIR", folder)); err != nil { //nolint:gosec // as /tmp
		remove()
		return none, fmt.Errorf("keep temporary files in memory: %w", err)
	}
	return remove, nil
}

// freeIn returns how many bytes a file system has left; 0 if it does not exist.
func freeIn(folder string) uint64 {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0
	}
	return stat.Bavail * uint64(stat.Bsize)
}
