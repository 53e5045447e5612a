package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	modernc "modernc.org/sqlite"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/sqltx"
)

// ErrTwoLibraries means that two copies of SQLite in one program have the file open, such as
// mattn/go-sqlite3 and this package's driver. The system keeps file locks by process: a copy does
// not see the other's locks, and closing the file releases both. Both copies could write at once
// and destroy the file. Pass the program's own driver to [New] instead.
var ErrTwoLibraries = errors.New("two SQLite libraries in one program have the file open")

//go:embed sql/library.sql
var librarySQL string

// library is a copy of SQLite and the file that it works on.
type library struct {
	build string
	path  string
}

func libraryOf(tx runner) (library, error) {
	found, err := list(tx, func(rows *sql.Rows) (l library, err error) {
		err = rows.Scan(&l.build, &l.path)
		return l, err
	}, librarySQL)
	if err != nil {
		return library{}, err
	}
	return found[0], nil
}

// opened holds the open stores of this program.
var opened struct {
	sync.Mutex
	stores map[*Store]bool
}

func (s *Store) enlist() {
	opened.Lock()
	defer opened.Unlock()
	if opened.stores == nil {
		opened.stores = make(map[*Store]bool)
	}
	opened.stores[s] = true
}

func (s *Store) delist() {
	opened.Lock()
	defer opened.Unlock()
	delete(opened.stores, s)
}

// others are the SQLite libraries that do not share locks with this package's driver, by import
// path.
var others = []string{
	"github.com/mattn/go-sqlite3", "github.com/ncruces/go-sqlite3", "crawshaw.io/sqlite", "github.com/eatonphil/gosqlite",
	"github.com/bvinc/go-sqlite-lite", "github.com/gwenn/gosqlite", "github.com/tursodatabase/go-libsql",
}

// otherLibrary names another SQLite library that is linked into the program. Empty: none is known.
var otherLibrary = sync.OnceValue(func() string {
	if info, known := debug.ReadBuildInfo(); known {
		for _, module := range info.Deps {
			if slices.Contains(others, module.Path) {
				return module.Path
			}
		}
	}
	for _, name := range sql.Drivers() {
		if name != "sqlite3" && name != "libsql" {
			continue
		}
		db, err := sql.Open(name, "") // opens no file yet
		if err != nil {
			return "the driver " + name
		}
		named := driverPackage(db)
		if _ = db.Close(); !strings.HasPrefix(named, "modernc.org/") {
			return named
		}
	}
	return ""
})

// lockForAll makes the driver use locks that survive the closing of another descriptor of the file.
// Every copy or hash of the file by the program closes one. First is true if the driver has not
// locked any file before.
func lockForAll() (first bool) {
	before, err := modernc.OFDLocking(true)
	return err == nil && !before
}

// refuseStrangers refuses a file that another library of the program has open. The check comes
// before this package's driver opens the file, because opening and closing would already do the
// damage. The check works only for the first file of a program.
func refuseStrangers(path string, first bool) error {
	if !first || otherLibrary() == "" {
		return nil
	}
	if n, _ := descriptors(path, path+"-shm"); n > 0 {
		return strangers(path)
	}
	return nil
}

func strangers(path string) error {
	return fmt.Errorf("%w: %s is open by the driver of this package and by another (%s); give the store that driver's *sql.DB with sqlite.New, or give the other code Store.DB, or put the store into a file of its own",
		ErrTwoLibraries, path, otherLibrary())
}

// neighbour checks now and then whether another library of the program has opened the file.
type neighbour struct {
	looks bool
	seen  error
}

// newNeighbour checks only if another library is linked in, and if the store's library keeps one
// descriptor of the -shm file. All libraries built from SQLite's C code for Unix do.
func newNeighbour(path string, db *sql.DB) neighbour {
	if otherLibrary() == "" || strings.HasPrefix(driverPackage(db), "github.com/ncruces/") {
		return neighbour{}
	}
	_, known := descriptors(path)
	return neighbour{looks: known}
}

func (n *neighbour) check(path string) error {
	if !n.looks || n.seen != nil {
		return n.seen
	}
	if open, known := descriptors(path + "-shm"); known && open > 1 {
		n.seen = fmt.Errorf("%w: %w", strangers(path), sluice.ErrUnavailable)
	}
	return n.seen
}

func driverPackage(db *sql.DB) string {
	kind := reflect.TypeOf(db.Driver())
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return kind.PkgPath()
}

// mine checks that a transaction uses this store's library and file.
func (s *Store) mine(ctx context.Context, tx Tx) error {
	if group, ok := tx.(*groupTx); ok {
		if group.writer != s.writer {
			return fmt.Errorf("%w: it is of the store on %s, and this one is on %s", sluice.ErrForeignTx, group.writer.file.path, s.writer.file.path)
		}
		return nil
	}
	if err := s.writer.file.check(); err != nil {
		return err
	}
	return s.compare(ctx, tx, sqltx.Find(tx))
}

func (s *Store) compare(ctx context.Context, tx Tx, from sqltx.Origin) error {
	if from.Kind == sqltx.DB {
		return fmt.Errorf("%w: it is a whole database (%T), each statement of which commits by itself; begin a transaction", sluice.ErrForeignTx, tx)
	}
	if from.Of(s.db) {
		return nil
	}
	in, err := libraryOf(foreignTx{ctx, tx})
	own := s.writer.library
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return fmt.Errorf("%w: it is of %s, and the store's driver is %s: give the store the *sql.DB of the transaction with sqlite.New, or begin the transaction on Store.DB: %w",
			sluice.ErrForeignTx, from, driverPackage(s.db), err)
	case !sameFile(in.path, own.path):
		return fmt.Errorf("%w: it is on the file %q, and the store is on %q", sluice.ErrForeignTx, in.path, own.path)
	case in.build != own.build:
		return fmt.Errorf("%w: it is of %s, and the store's driver is %s. Two SQLite libraries on one file destroy it: give the store the *sql.DB of the transaction with sqlite.New, or begin the transaction on Store.DB",
			sluice.ErrForeignTx, from, driverPackage(s.db))
	}
	return nil
}

// ours checks that a transaction belongs to any open store of this program.
func ours(ctx context.Context, tx Tx) error {
	if _, ok := tx.(*groupTx); ok {
		return nil
	}
	opened.Lock()
	stores := make([]*Store, 0, len(opened.stores))
	for s := range opened.stores {
		stores = append(stores, s)
	}
	opened.Unlock()
	from := sqltx.Find(tx)
	for _, s := range stores {
		if from.Of(s.db) {
			return s.writer.file.check()
		}
	}
	err := fmt.Errorf("%w: no store is open in this program", sluice.ErrForeignTx)
	for _, s := range stores {
		if err = s.mine(ctx, tx); err == nil {
			return nil
		}
	}
	return err
}

func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
