package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// sharedMemory is where Linux keeps a file system in memory.
	sharedMemory = "/dev/shm"
	// memoryNeeded is how much must be free there: the tests of everything take a third of it.
	memoryNeeded = 6 << 30
)

// useMemory has temporary files kept in memory where there is room for them: tests make and drop thousands of databases, and
// a new file costs up to ten times as much on a disk. It gives what removes them. A folder that TMPDIR names already is
// left as it is. The folder's name is always the same, so that Go knows tests again which it has run; two at a time do not
// share it.
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
		return none, lock.Close() // another testbed has it
	}
	remove = func() {
		_ = os.RemoveAll(folder)
		_ = lock.Close()
	}
	// One that was killed may have left something behind. The server's user must get through.
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755), os.Setenv("TMPDIR", folder)); err != nil { //nolint:gosec // as /tmp
		remove()
		return none, fmt.Errorf("keep temporary files in memory: %w", err)
	}
	return remove, nil
}

// freeIn says how many bytes a file system has left; none where there is no such.
func freeIn(folder string) uint64 {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0
	}
	return stat.Bavail * uint64(stat.Bsize)
}
