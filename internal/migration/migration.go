// Package migration reads numbered, forward-only schema files, and works out which of them a
// database still needs. The stores run them.
//
// Begin with [Steps], which reads the files, and [Pending], which returns the missing steps. A
// [Guard] protects an open store from a schema that is too new for its program.
//
// Read next: the folders schema of packages sqlite and postgres, and their migrate.go.
package migration

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/sluice-queue/sluice"
)

// NewFile creates an empty database file, readable and writable by its owner only, unless it
// exists. SQLite would let everybody read the file. SQLite gives the files beside it the same
// rights.
func NewFile(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// Applied is a step that a database has had.
type Applied struct {
	Version   int
	Checksum  string
	WorksFrom int
}

var (
	fileName  = regexp.MustCompile(`^(\d{4})_([a-z_]+)\.sql$`)
	worksFrom = regexp.MustCompile(`(?m)^-- works with programs from: (\d+)$`)
)

// Steps reads the schema files of a folder, in order. Each file is named NNNN_name.sql, numbered
// from 1 without a gap. Its text names the first step whose programs can still use the schema.
func Steps(files fs.FS, folder string) ([]sluice.Migration, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, err
	}
	steps := make([]sluice.Migration, 0, len(entries))
	for _, entry := range entries {
		step, err := read(files, folder, entry.Name())
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	sort.Slice(steps, func(i, j int) bool { return steps[i].Version < steps[j].Version })
	for i, step := range steps {
		if step.Version != i+1 {
			return nil, fmt.Errorf("schema file %04d is missing", i+1)
		}
	}
	return steps, nil
}

func read(files fs.FS, folder, name string) (sluice.Migration, error) {
	parts := fileName.FindStringSubmatch(name)
	if parts == nil {
		return sluice.Migration{}, fmt.Errorf("schema file %q is not named NNNN_name.sql", name)
	}
	text, err := fs.ReadFile(files, folder+"/"+name)
	if err != nil {
		return sluice.Migration{}, err
	}
	from := worksFrom.FindSubmatch(text)
	if from == nil {
		return sluice.Migration{}, fmt.Errorf("schema file %q does not say which programs it works with", name)
	}
	step := sluice.Migration{Name: strings.ReplaceAll(parts[2], "_", " "), SQL: string(text)}
	if step.Version, err = strconv.Atoi(parts[1]); err != nil {
		return sluice.Migration{}, err
	}
	if step.WorksFrom, err = strconv.Atoi(string(from[1])); err != nil {
		return sluice.Migration{}, err
	}
	sum := sha256.Sum256(text)
	step.Checksum = hex.EncodeToString(sum[:8])
	return step, nil
}

// Moving is the version of a migration while jobs are moved into a store. No program knows this
// step, so none opens the store half full.
const Moving = 1 << 20

// MovedCode is the SQLSTATE with which PostgreSQL refuses writes to a store that was moved.
// MovedText begins SQLite's message for the same.
const (
	MovedCode = "SLM01"
	MovedText = "sluice: this store was moved to "
)

// Pending returns the steps that a database still needs. If the database has had a step that needs
// a newer program, Pending returns a [sluice.ErrNewerSchema].
func Pending(steps []sluice.Migration, applied []Applied) ([]sluice.Migration, error) {
	if err := Refusal(len(steps), applied); err != nil {
		return nil, err
	}
	had := make(map[int]bool, len(applied))
	for _, a := range applied {
		had[a.Version] = true
		if a.Version < 1 || a.Version > len(steps) {
			continue // not a step of this program
		}
		if known := steps[a.Version-1]; known.Checksum != a.Checksum {
			return nil, fmt.Errorf("schema step %d (%s) was applied with checksum %s, this program has %s: the file was changed after it was released",
				a.Version, known.Name, a.Checksum, known.Checksum)
		}
	}
	var pending []sluice.Migration
	for _, step := range steps {
		if !had[step.Version] {
			pending = append(pending, step)
		}
	}
	return pending, nil
}

// Missing is the error of a database that still needs steps.
func Missing(pending []sluice.Migration) error {
	first := fmt.Sprintf("%d (%s)", pending[0].Version, pending[0].Name)
	if len(pending) == 1 {
		return fmt.Errorf("schema step %s is missing: run `sluice migrate`: %w", first, sluice.ErrNotMigrated)
	}
	return fmt.Errorf("%d schema steps are missing, the first is %s: run `sluice migrate`: %w", len(pending), first, sluice.ErrNotMigrated)
}
