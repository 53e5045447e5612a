//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package hook

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// turn lets one hook at a time take events in: the others leave at once, and their events are taken in with those of the
// one. It spares work; nothing is wrong where two take in at once. A process that ends gives its turn back.
func (s Spool) turn() (end func(), mine bool) {
	file, err := os.OpenFile(filepath.Join(s.folders[0].path, "turn"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false
	}
	if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = file.Close()
		return nil, false
	}
	return func() { _ = file.Close() }, true
}

// private reports whether a folder is this user's, and no others may look into it.
func private(info fs.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

// syncFolder makes names of a folder survive a power cut.
func syncFolder(path string) error {
	opened, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	return opened.Sync()
}
