// Package testcache is the folder outside the tree in which tests keep what they install or build.
//
// Begin with [Folder]; [Lock] lets one process at a time work in it.
//
// Read next: packages internal/debian and internal/temporaltest, which use it.
package testcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Folder makes and returns the folder: `sluice` in os.UserCacheDir, or in os.TempDir on a machine without a home.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	folder := filepath.Join(cache, "sluice")
	return folder, os.MkdirAll(folder, 0o755)
}

// Lock waits until no other process, nor another caller in this one, holds the lock of that name, and
// tells on standard error that it waits for another process that does what `doing` says. The kernel
// releases the lock if its holder dies.
func Lock(name, doing string) (unlock func(), err error) {
	folder, err := Folder()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, name+".lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(os.Stderr, "waiting for another process that", doing)
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
