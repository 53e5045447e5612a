package sqlite

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

// diskState is the file system of a folder, as the system reports it.
type diskState struct {
	known    bool
	free     int64 // bytes available to this user
	readOnly bool  // mounted read-only, or made read-only after a fault
	kind     int64 // type of the file system, as Linux numbers them
}

// fileSystem is a file system on which a store is not safe.
type fileSystem struct {
	name     string
	severity health.Severity
}

// badFileSystems are unsafe file systems by their Linux number.
var badFileSystems = map[int64]fileSystem{
	0x6969:     {"NFS", health.SeverityError},
	0x517B:     {"SMB", health.SeverityError},
	0xFF534D42: {"CIFS", health.SeverityError},
	0xFE534D42: {"SMB2", health.SeverityError},
	0x5346414F: {"AFS", health.SeverityError},
	0x73757245: {"Coda", health.SeverityError},
	0x00C36400: {"Ceph", health.SeverityError},
	0x0BD00BD0: {"Lustre", health.SeverityError},
	0x65735546: {"FUSE", health.SeverityWarning},
	0x01021997: {"9P", health.SeverityWarning},
	0x786F4256: {"a VirtualBox share", health.SeverityWarning},
	0x01021994: {"tmpfs", health.SeverityNote},
	0x858458F6: {"ramfs", health.SeverityNote},
}

// disk inspects the file system that holds the file.
func (c *examination) disk(context.Context) error {
	state, err := c.store.diskOf(filepath.Dir(c.path))
	if err != nil {
		return err
	}
	if !state.known {
		c.Well("filesystem", "unknown: this system does not tell; it must not be one over a network")
		return nil
	}
	c.space(state.free)
	c.fileSystem(badFileSystems[state.kind&0xFFFFFFFF])
	c.writable(state)
	return nil
}

func (c *examination) space(free int64) {
	c.Figure("disk_free_bytes", float64(free), "bytes")
	if severity := c.judge("disk", float64(free)); severity != "" {
		c.Find(severity, "disk", "the disk of the file has "+checkup.Bytes(float64(free))+" left", "when it is full, nothing can be enqueued, claimed or settled",
			fmt.Sprintf("make room in %s, or keep less of what is done: sluice settings set QUEUE keep_completed=1d --reason 'the disk is full'", filepath.Dir(c.path)))
		return
	}
	c.Well("disk", "%s are free", checkup.Bytes(float64(free)))
}

func (c *examination) fileSystem(bad fileSystem) {
	move := "end the programs that use the file, and move it to a local disk: " + c.shell(".backup /var/lib/sluice/jobs.db")
	switch bad.severity {
	case health.SeverityError:
		c.Find(bad.severity, "filesystem", "the file lies on "+bad.name, "locks over a network cannot be trusted: two machines may write at the same time, and destroy the file", move)
	case health.SeverityWarning:
		c.Find(bad.severity, "filesystem", "the file lies on "+bad.name, "whether it locks and writes as a disk does depends on who serves it", move)
	case health.SeverityNote:
		c.Find(bad.severity, "filesystem", "the file lies on "+bad.name+", which is memory", "it is gone when the machine ends", move)
	default:
		c.Well("filesystem", "one of this machine")
	}
}

func (c *examination) writable(state diskState) {
	const why = "nothing can be enqueued, claimed or settled"
	folder := filepath.Dir(c.path)
	switch {
	case state.readOnly:
		c.Find(health.SeverityError, "writable", "the file system of "+folder+" is mounted read-only", why,
			"look why (dmesg), since Linux does so after a fault of the disk, and then: mount -o remount,rw "+quoted(mountOf(folder)))
	case !mayWrite(c.path):
		c.Find(health.SeverityError, "writable", "this user may not write the file "+c.path, why, "chmod u+w "+quoted(c.path)+"; or chown it to the user that runs this")
	case !mayWrite(folder):
		c.Find(health.SeverityError, "writable", "this user may not write the folder "+folder, "the log beside the file cannot be made",
			"chmod u+wx "+quoted(folder)+"; or chown it to the user that runs this")
	default:
		c.Well("writable", "the file and its folder")
	}
}
