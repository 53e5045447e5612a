package sqlite

import (
	"context"
	"strings"

	"github.com/sluice-queue/sluice/internal/migration"
)

// wasMoved reports that the file was moved to another store.
func (c *examination) wasMoved(ctx context.Context) error {
	var marks []string
	err := c.store.look(ctx, func(tx runner) error {
		there, err := list(tx, scanOne[bool], "select exists (select 1 from sqlite_master where type = 'table' and name = 'sluice_moved')")
		if err == nil && there[0] {
			marks, err = list(tx, scanOne[string], "select mark from sluice_moved")
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(marks) > 0:
		return c.Moved(marks[0])
	}
	c.Well("moved", "it was not moved")
	return nil
}

// keepsClosed reports whether a trigger is one with which a move keeps a file closed.
func keepsClosed(o object) bool {
	return o.kind == "trigger" && strings.HasPrefix(o.name, "sluice_moved_") && strings.Contains(flat(o.text), "begin select raise(abort, '"+migration.MovedText)
}
