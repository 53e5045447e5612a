// Package smalldisk gives tests a disk that they can fill.
package smalldisk

import (
	"os"
	"os/exec"
	"testing"
)

// New mounts a file system of a size, such as 4m, until the test ends. It takes root, or sudo that asks for nothing: where
// neither is, the test fails.
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

// Fill writes to a file of the disk until nothing more fits, and gives its name: whoever deletes it makes room again.
func Fill(t testing.TB, folder string) (ballast string) {
	t.Helper()
	file, err := os.CreateTemp(folder, "ballast-")
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1024); err == nil; {
		_, err = file.Write(block)
	}
	_ = file.Close() // that it could not be written is what it is for
	return file.Name()
}
