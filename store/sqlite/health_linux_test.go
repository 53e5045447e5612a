package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/health"
)

const plenty = 1 << 40

// systemFindings provoke findings that Linux is needed for.
func systemFindings() []trouble {
	lieOn := func(kind, free int64, readOnly bool) func(p *patient) {
		return func(p *patient) { p.store.LieOn(kind, free, readOnly) }
	}
	local := lieOn(0xEF53, plenty, false)
	return []trouble{
		{check: "wal", severity: health.SeverityWarning, says: "a read is kept open by pid", provoke: func(p *patient) {
			p.store.JudgeHealth("wal", health.SeverityWarning, 1<<20)
			p.sql("pragma wal_checkpoint(truncate)")
			p.hold("begin", "select count(*) from sluice_queue")
			p.fill(2)
		}},
		{check: "lock", severity: health.SeverityError, says: "it was held by pid", provoke: func(p *patient) {
			p.store.LookFor(200 * time.Millisecond)
			p.hold("begin immediate")
		}, relieve: func(p *patient) {
			found, _ := p.finding(trouble{check: "lock"})
			if !strings.Contains(found.What, "(sqlite3)") {
				p.Errorf("%q does not name the program", found.What)
			}
			p.store.LookFor(3 * time.Second)
			p.repair(found.Repair)
		}},
		{check: "disk", severity: health.SeverityWarning, says: "has 10 MiB left", provoke: func(p *patient) {
			p.store.JudgeHealth("disk", health.SeverityWarning, 1<<30)
			p.store.LieOn(0xEF53, 10<<20, false)
		}, relieve: local},
		{check: "filesystem", severity: health.SeverityError, says: "NFS", provoke: lieOn(0x6969, plenty, false), relieve: local},
		{check: "filesystem", severity: health.SeverityError, says: "CIFS", provoke: lieOn(-0xACB2BE, plenty, false), relieve: local}, // the magic number as 32-bit systems report it
		{check: "filesystem", severity: health.SeverityWarning, says: "FUSE", provoke: lieOn(0x65735546, plenty, false), relieve: local},
		{check: "filesystem", severity: health.SeverityNote, says: "tmpfs", provoke: lieOn(0x01021994, plenty, false), relieve: local},
		{check: "writable", severity: health.SeverityError, says: "mounted read-only", provoke: lieOn(0xEF53, plenty, true), relieve: local},
		{check: "writable", severity: health.SeverityError, says: "may not write the file", provoke: func(p *patient) {
			asNobody(p)
			p.chmod(p.path, 0o444)
		}},
		{check: "writable", severity: health.SeverityError, says: "may not write the folder", provoke: func(p *patient) {
			asNobody(p)
			p.chmod(filepath.Dir(p.path), 0o555)
		}},
	}
}

func (p *patient) chmod(path string, mode os.FileMode) {
	p.Helper()
	if err := os.Chmod(path, mode); err != nil {
		p.Fatal(err)
	}
}

// asNobody gives this goroutine's thread, and no other, a user without special rights. The thread belongs to the test's
// goroutine, and ends with it.
func asNobody(p *patient) {
	p.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	if err := os.Chown(filepath.Dir(p.path), nobody, -1); err != nil {
		p.Fatal(err)
	}
	if err := os.Chown(p.path, nobody, -1); err != nil {
		p.Fatal(err)
	}
	p.chmod(filepath.Dir(filepath.Dir(p.path)), 0o755)
	runtime.LockOSThread()
	if _, _, failed := syscall.RawSyscall(syscall.SYS_SETREUID, nobody, ^uintptr(0), 0); failed != 0 {
		p.Fatal(failed)
	}
}

func TestHealthDoesNotClaimToKnowWhatTheSystemDoesNotTell(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	p.store.LieSomewhere()
	for _, f := range p.health(false).Findings {
		if f.Check == "filesystem" && (!f.Well || !strings.HasPrefix(f.What, "unknown")) {
			t.Errorf("found %+v, want unknown", f)
		}
		if f.Check == "disk" || f.Check == "writable" {
			t.Errorf("found %+v, want nothing", f)
		}
	}
}
