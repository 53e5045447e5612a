package report

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Machine describes this machine. The databases are in folder.
func Machine(folder string) ([]Fact, error) {
	cpu, err := field("/proc/cpuinfo", "model name", ":")
	if err != nil {
		return nil, err
	}
	memory, err := field("/proc/meminfo", "MemTotal", ":")
	if err != nil {
		return nil, err
	}
	kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(memory, " kB"), 64)
	if err != nil {
		return nil, fmt.Errorf("/proc/meminfo: MemTotal %q: %w", memory, err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, err
	}
	system, err := field("/etc/os-release", "PRETTY_NAME", "=")
	if err != nil {
		return nil, err
	}
	disk, err := FileSystem(folder)
	if err != nil {
		return nil, err
	}
	return []Fact{
		{"CPU", cpu},
		{"Cores", strconv.Itoa(runtime.NumCPU())},
		{"Memory", fmt.Sprintf("%.1f GiB", kilobytes/1024/1024)},
		{"Kernel", "Linux " + strings.TrimSpace(string(kernel)) + " " + runtime.GOARCH},
		{"System", strings.Trim(system, `"`)},
		{"File system of the databases", disk},
	}, nil
}

// field returns the text after the separator in the first line that begins with name.
func field(path, name, separator string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		before, after, found := strings.Cut(lines.Text(), separator)
		if found && strings.TrimSpace(before) == name {
			return strings.TrimSpace(after), nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return "", fmt.Errorf("%s has no line %q", path, name)
}

// fileSystems names common file systems by the magic number of statfs.
var fileSystems = map[int64]string{
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs", 0x794c7630: "overlay", 0x01021994: "tmpfs",
}

// FileSystem names the file system of a folder, such as "ext4".
func FileSystem(folder string) (string, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return "", fmt.Errorf("statfs %s: %w", folder, err)
	}
	if name, known := fileSystems[stat.Type]; known {
		return name, nil
	}
	return fmt.Sprintf("unknown (%#x)", stat.Type), nil
}

// FreeBytes returns the free bytes of a folder's file system, for users other than root.
func FreeBytes(folder string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", folder, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}
