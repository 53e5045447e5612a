// Package sqltx finds the driver and the database of a transaction of database/sql, also inside an
// ORM's wrapper. The stores use it to refuse transactions of other drivers and databases.
//
// Begin with [Find], which returns the [Origin] of a value, and compare it with Origin.Of.
//
// Read next: library.go of package sqlite and tx.go of package postgres.
package sqltx

import (
	"context"
	"database/sql"
	"reflect"
)

// Kind is the kind of thing found inside a value.
type Kind int

// The kinds, from the least wanted to the most.
const (
	Unknown Kind = iota
	DB
	Conn
	Tx
)

// Origin is the source of a transaction.
type Origin struct {
	Kind Kind
	// Tx is the transaction itself, if it was found, because a wrapper may read placeholders in its
	// own way.
	Tx *sql.Tx
	// Driver is the package and the type of the driver, such as "github.com/lib/pq (*pq.Driver)".
	// Empty: unknown.
	Driver string
	// Package is the import path of the driver's package. Empty: unknown.
	Package string
	db      uintptr
}

// Of reports whether the transaction belongs to this database, whichever store or ORM opened it.
func (o Origin) Of(db *sql.DB) bool { return o.db != 0 && o.db == reflect.ValueOf(db).Pointer() }

// String returns the driver's name.
func (o Origin) String() string {
	if o.Driver == "" {
		return "an unknown driver"
	}
	return o.Driver
}

var kinds = map[reflect.Type]Kind{
	reflect.TypeFor[*sql.Tx](): Tx, reflect.TypeFor[*sql.Conn](): Conn, reflect.TypeFor[*sql.DB](): DB,
}

// maxDepth is how many wrappers deep Find looks.
const maxDepth = 8

// executor is the method that all transactions and wrappers have. Find looks only into values that
// have it.
type executor interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

var executing = reflect.TypeFor[executor]()

// Find finds the transaction, connection or database of database/sql in a value.
func Find(tx any) Origin {
	found, kind := find(reflect.ValueOf(tx), maxDepth)
	if kind == Unknown {
		return Origin{}
	}
	out := Origin{Kind: kind}
	if found.CanInterface() {
		out.Tx, _ = found.Interface().(*sql.Tx)
	}
	db := found
	if kind != DB {
		db = field(found.Elem(), "db")
	}
	if !db.IsValid() || db.Kind() != reflect.Pointer || db.IsNil() {
		return out
	}
	out.db = db.Pointer()
	driver := concrete(field(db.Elem(), "connector"))
	if own := concrete(field(driver, "driver")); own.IsValid() && own.Type().PkgPath() != "" {
		driver = own
	}
	if driver.IsValid() {
		out.Package = driver.Type().PkgPath()
		out.Driver = out.Package + " (" + driver.Type().String() + ")"
	}
	return out
}

// find looks for the most wanted kind.
func find(v reflect.Value, depth int) (found reflect.Value, kind Kind) {
	executes := false
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		if v.IsNil() {
			return v, Unknown
		}
		if kind := kinds[v.Type()]; kind != Unknown {
			return v, kind
		}
		executes = executes || v.Type().Implements(executing)
		v = v.Elem()
	}
	if depth == 0 || !v.IsValid() || v.Kind() != reflect.Struct || !executes && !reflect.PointerTo(v.Type()).Implements(executing) {
		return v, Unknown
	}
	for i := range v.NumField() {
		if inner, of := find(v.Field(i), depth-1); of > kind {
			found, kind = inner, of
		}
		if kind == Tx {
			break
		}
	}
	return found, kind
}

// concrete follows interfaces and pointers to the value.
func concrete(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		if v.IsNil() {
			return reflect.Value{}
		}
		v = v.Elem()
	}
	return v
}

// field returns a field of a struct, if the struct has it.
func field(v reflect.Value, name string) reflect.Value {
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}
