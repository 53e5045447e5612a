// Package smalldisk gives tests a small disk that they can fill, to prove that a full disk loses no
// jobs.
//
// Begin with [New], which mounts a file system in memory, and [Fill], which fills it. A test puts
// its SQLite file there. Mounting takes root, or sudo without a password.
//
// Read next: the tests of package internal/faulttest on SQLite, which use it.
package smalldisk

import (
	"os"
	"os/exec"
	"testing"
)

// New mounts a file system of a size, such as 4m, until the test ends. Without root, and without
// sudo that asks for no password, the test fails.
func New(t testing.TB, size string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	run(t, "mount", "-t", "tmpfs", "-o", "mode=1777,size="+size, "tmpfs", folder)
	t.Cleanup(func() { run(t, "umount", folder) })
	return folder
}

func run(t testing.TB, args ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		args = append([]string{"sudo", "-n"}, args...)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("a small disk takes root, or sudo without a password: %v: %v\n%s", args, err, out)
	}
}

// Fill writes a file until the disk is full, and returns its path. Delete the file to free the
// space.
func Fill(t testing.TB, folder string) (ballast string) {
	t.Helper()
	file, err := os.CreateTemp(folder, "ballast-")
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1024); err == nil; {
		_, err = file.Write(block)
	}
	_ = file.Close() // the failed write is the purpose
	return file.Name()
}
