package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

//go:embed sql/health_objects.sql
var healthObjectsSQL string

//go:embed sql/health_orphans.sql
var healthOrphansSQL string

//go:embed sql/health_integrity.sql
var healthIntegritySQL string

var sqlComment = regexp.MustCompile(`(?m)--.*$`)

// object is a table, an index, a trigger or a view.
type object struct {
	kind, name, table, text string
}

func scanObject(rows *sql.Rows) (o object, err error) {
	err = rows.Scan(&o.kind, &o.name, &o.table, &o.text)
	return o, err
}

// madeObjects returns the objects of the schema files: it runs the files on a database in memory
// and lists the result.
var madeObjects = sync.OnceValues(func() ([]object, error) {
	steps, err := schemaSteps()
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1) // each connection has its own database in memory
	tx := readTx{context.Background(), db, nil}
	for _, step := range steps {
		if _, err := tx.exec(step.SQL); err != nil {
			return nil, err
		}
	}
	return list(tx, scanObject, healthObjectsSQL)
})

// objects compares the file's objects with the schema's.
func (c *examination) objects(ctx context.Context) error {
	if c.on.step > knownSteps() {
		return nil // a newer program's schema, whose objects are unknown here
	}
	made, err := madeObjects()
	if err != nil {
		return err
	}
	var stored []object
	err = c.store.look(ctx, func(tx runner) (err error) {
		if stored, err = list(tx, scanObject, healthObjectsSQL); err != nil {
			return err
		}
		stored, err = withoutFollowerTriggers(tx, stored)
		return err
	})
	if err != nil {
		return err
	}
	there := make(map[string]bool)
	for _, o := range stored {
		there[o.name] = true
	}
	missing := 0
	for _, o := range made {
		if !there[o.name] {
			missing++
			c.missing(o)
		}
	}
	if missing == 0 {
		c.Well("index", "every table, index and trigger is there")
	}
	c.foreign(made, stored)
	return nil
}

// foreign finds objects of others on Sluice's tables. A trigger of others can change or swallow a
// program's write unnoticed.
func (c *examination) foreign(made, stored []object) {
	ours := make(map[string]string)
	for _, o := range made {
		ours[o.kind+" "+o.name] = flat(o.text)
	}
	before := len(c.Health.Findings)
	moved := slices.ContainsFunc(stored, func(o object) bool { return o.name == "sluice_moved" })
	for _, o := range stored {
		if moved && keepsClosed(o) {
			continue
		}
		text, is := ours[o.kind+" "+o.name]
		switch {
		case o.kind == "trigger" && is && text != flat(o.text):
			c.Find(health.SeverityError, "foreign", "the trigger "+o.name+" on "+o.table+" is not as Sluice made it: "+cut(flat(o.text)),
				"what it sees to is not done, or something else is", c.shell("drop trigger "+o.name+"; "+text))
		case o.kind == "trigger" && !is:
			c.Find(health.SeverityError, "foreign", "the trigger "+o.name+" on "+o.table+" is not Sluice's: "+cut(flat(o.text)),
				"it can change, refuse or swallow what programs write, also entries of the audit", c.shell("drop trigger "+identifier(o.name)))
		case o.kind == "view" && is && text != flat(o.text):
			c.Find(health.SeverityError, "foreign", "the view "+o.name+" is not as Sluice made it: "+cut(flat(o.text)),
				"what reads it is told something else", "restore the file from a backup, or make it as the schema of this version does")
		case (o.kind == "view" || o.kind == "table") && !is && !slices.Contains(notOfSteps, o.name):
			c.Find(health.SeverityNote, "foreign", "the "+o.kind+" "+o.name+" is not Sluice's", "a later migration may want the name",
				"give it another name: names with sluice_ are Sluice's")
		}
	}
	if len(c.Health.Findings) == before {
		c.Well("foreign", "nobody else's triggers or views")
	}
}

// notOfSteps are tables of Sluice that no schema step creates.
var notOfSteps = []string{"sluice_migration", "sluice_move", "sluice_moved"}

// flat returns a text on one line, without comments.
func flat(text string) string {
	return strings.Join(strings.Fields(sqlComment.ReplaceAllString(text, "")), " ")
}

func cut(text string) string {
	if runes := []rune(text); len(runes) > 100 {
		return string(runes[:99]) + "…"
	}
	return text
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (c *examination) missing(o object) {
	why := "what goes by it reads the whole table, or is not kept unique"
	mend := c.shell(strings.Join(strings.Fields(sqlComment.ReplaceAllString(o.text, "")), " "))
	switch o.kind {
	case "trigger":
		why = "what it sees to is not done"
	case "table":
		why, mend = "what needs it fails", "restore the file from a backup"
	}
	c.Find(health.SeverityError, "index", "the "+o.kind+" "+o.name+" is missing", why, mend)
}

// orphans finds lives without a job.
func (c *examination) orphans(ctx context.Context) error {
	return c.store.look(ctx, func(tx runner) error {
		rows, err := list(tx, func(rows *sql.Rows) (o checkup.Orphans, err error) {
			err = rows.Scan(&o.LiveWithoutJob, &o.DoneWithoutJob, &o.LiveAndDone)
			return o, err
		}, healthOrphansSQL)
		if err == nil {
			c.Add(rows[0], "sluice_", c.shell)
		}
		return err
	})
}

// integrity makes SQLite read and check every page.
func (c *examination) integrity(ctx context.Context) error {
	var faults []string
	err := c.store.look(ctx, func(tx runner) (err error) {
		faults, err = list(tx, scanOne[string], healthIntegritySQL)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		faults = append(faults, err.Error())
	case len(faults) == 1 && faults[0] == "ok":
		c.Well("integrity", "every page and every index")
		return nil
	}
	onlyIndexes := len(faults) > 0
	for _, fault := range faults {
		onlyIndexes = onlyIndexes && (strings.Contains(fault, "missing from index") || strings.Contains(fault, "wrong # of entries in index"))
	}
	mend := "end the programs that use the file, keep a copy of it and of its log, restore a backup, and look for what damaged it (disk, memory, a network file system); " +
		"without a backup, sqlite3 from version 3.43 on saves what can still be read: sqlite3 " + quoted(c.path) + " .recover | sqlite3 " + quoted(c.path+".recovered")
	if onlyIndexes {
		mend = c.shell("reindex")
	}
	what := strings.Join(strings.Fields(strings.Join(faults[:min(len(faults), 3)], "; ")), " ")
	if len(faults) > 3 {
		what += "; and more"
	}
	c.Find(health.SeverityError, "integrity", "the file is damaged: "+what, "look-ups find the wrong rows, or none, and writes may make it worse", mend)
	return nil
}
