package sqlite

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxLocks is how many lines of /proc/locks are read.
const maxLocks = 10_000

// diskOf asks the system about the file system of a folder.
func diskOf(folder string) (diskState, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return diskState{}, fmt.Errorf("statfs %s: %w", folder, err)
	}
	return diskState{
		known: true, free: int64(stat.Bavail) * int64(stat.Bsize), //nolint:unconvert // other widths on other processors
		readOnly: stat.Flags&syscall.MS_RDONLY != 0, kind: int64(stat.Type), //nolint:unconvert // likewise
	}, nil
}

// mayWrite asks the system. Opening the file to try would be wrong: closing it releases SQLite's
// locks.
func mayWrite(path string) bool { return syscall.Access(path, 2) == nil }

// mountOf returns the mount point of a folder's file system.
func mountOf(folder string) string {
	device, known := deviceOf(folder)
	for known {
		parent := filepath.Dir(folder)
		if other, found := deviceOf(parent); parent == folder || !found || other != device {
			return folder
		}
		folder = parent
	}
	return folder
}

func deviceOf(path string) (device uint64, known bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return uint64(stat.Dev), true //nolint:unconvert // other widths on other processors
}

// lockHolders lists the processes that hold write or read locks on bytes of the database's -shm
// file. Processes of other machines and other containers are invisible.
func lockHolders(path string, writes bool, first, last int64) []lockHolder {
	info, err := os.Stat(path + "-shm")
	if err != nil {
		return nil
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return nil
	}
	file, err := os.Open("/proc/locks")
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	var holders []lockHolder
	lines := bufio.NewScanner(file)
	for n := 0; n < maxLocks && lines.Scan(); n++ {
		pid, found := lockLine(lines.Text(), stat.Ino, writes, first, last)
		if found && !slices.ContainsFunc(holders, func(h lockHolder) bool { return h.pid == pid }) {
			holders = append(holders, lockHolder{pid, commandOf(pid)})
		}
	}
	return holders
}

// lockLine parses a line such as `1: POSIX  ADVISORY  WRITE 4711 fd:01:262150 120 120`.
func lockLine(line string, inode uint64, writes bool, first, last int64) (pid int, found bool) {
	fields := strings.Fields(line)
	if len(fields) != 8 || (fields[3] == "WRITE") != writes {
		return 0, false
	}
	pid, err := strconv.Atoi(fields[4])
	from, fromErr := strconv.ParseInt(fields[6], 10, 64)
	until, untilErr := strconv.ParseInt(fields[7], 10, 64)
	if err != nil || pid <= 0 || fromErr != nil || untilErr != nil || from < first || until > last {
		return 0, false
	}
	return pid, strings.HasSuffix(fields[5], ":"+strconv.FormatUint(inode, 10))
}

func commandOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(text))
}
