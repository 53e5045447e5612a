//go:build unix

package sqlite

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// descriptors counts this process's open descriptors of any of the files. The function opens none
// itself, because closing one would release the process's locks.
func descriptors(paths ...string) (n int, known bool) {
	folder := "/dev/fd"
	if runtime.GOOS == "linux" {
		folder = "/proc/self/fd"
	}
	dir, err := os.Open(folder)
	if err != nil {
		return 0, false
	}
	defer func() { _ = dir.Close() }()
	numbers, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, false
	}
	var files []syscall.Stat_t
	for _, path := range paths {
		var stat syscall.Stat_t
		if syscall.Stat(path, &stat) == nil {
			files = append(files, stat)
		}
	}
	for _, number := range numbers {
		descriptor, err := strconv.Atoi(number)
		var stat syscall.Stat_t
		if err != nil || syscall.Fstat(descriptor, &stat) != nil {
			continue
		}
		for _, file := range files {
			if stat.Dev == file.Dev && stat.Ino == file.Ino {
				n++
			}
		}
	}
	return n, true
}
