package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// longestTemporary is the longest name of a folder in which SQLite can make a file, in bytes.
const longestTemporary = 480

// hasTemporaryFolder reports whether SQLite can make temporary files. On a read-only file system it often cannot: then
// each statement that needs one fails, unless temp_store is memory. SQLite takes the first of these folders that may be
// written.
func hasTemporaryFolder() bool {
	if runtime.GOOS == "windows" {
		return true // each user has such a folder
	}
	for _, folder := range []string{os.Getenv("SQLITE_TMPDIR"), os.Getenv("TMPDIR"), "/var/tmp", "/usr/tmp", "/tmp", "."} {
		if folder == "" {
			continue
		}
		file, err := os.CreateTemp(folder, "sluice_*")
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil:
			return false
		}
		_ = file.Close()
		_ = os.Remove(file.Name())
		return len(folder) <= longestTemporary
	}
	return false
}
