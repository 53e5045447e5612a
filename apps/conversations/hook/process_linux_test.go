package hook_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sluice-queue/sluice/internal/smalldisk"
)

// nobody is the id of the user of that name.
const nobody = 65534

func TestHookInAFolderThatIsReadOnly(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	folder := filepath.Dir(p.file)
	if os.Getuid() == 0 { // permissions do not bind root
		p.program = copyOf(t, p.program, filepath.Join(p.caches, "program"))
		p.as = func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		for _, path := range []string{folder, p.file, p.caches} {
			if err := os.Chown(path, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mode := func(mode os.FileMode) {
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
	}
	mode(0o500)
	defer mode(0o700)
	for range 3 {
		p.say()
	}
	if n := len(p.spooled()); n != 3 {
		t.Errorf("%d events wait", n)
	}
	mode(0o700)
	p.takeIn()
	p.isWhole()
}

func copyOf(t *testing.T, from, to string) string {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestHookOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smalldisk.New(t, "4m")
	p := &place{T: t, program: os.Args[0], file: filepath.Join(disk, "c.db"), caches: t.TempDir(), as: func(*exec.Cmd) {}}
	p.prepare()
	ballast := smalldisk.Fill(t, disk)
	for range 3 {
		p.say()
	}
	if n := len(p.spooled()); n != 3 {
		t.Errorf("%d events wait", n)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	p.takeIn()
	p.isWhole()
}
