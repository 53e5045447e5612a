// Package sqltx says of what driver and database a transaction of database/sql is, also where an ORM has wrapped it.
// The stores use it to refuse what is not theirs.
package sqltx

import (
	"context"
	"database/sql"
	"reflect"
)

// Kind is what was found inside of a value.
type Kind int

// The kinds, from the least wanted to the most.
const (
	Unknown Kind = iota
	DB
	Conn
	Tx
)

// Origin is where a transaction comes from.
type Origin struct {
	Kind Kind
	// Tx is the transaction itself, where it can be had: a wrapper may read placeholders in its own way.
	Tx *sql.Tx
	// Driver names the package and the type of the driver, such as "github.com/lib/pq (*pq.Driver)"; "": unknown.
	Driver string
	// Package is the import path of the driver's package; "": unknown.
	Package string
	db      uintptr
}

// Of tells a database or its driver from others, whoever has opened them.
func (o Origin) Of(db *sql.DB) bool { return o.db != 0 && o.db == reflect.ValueOf(db).Pointer() }

// String names the driver.
func (o Origin) String() string {
	if o.Driver == "" {
		return "an unknown driver"
	}
	return o.Driver
}

var kinds = map[reflect.Type]Kind{
	reflect.TypeFor[*sql.Tx](): Tx, reflect.TypeFor[*sql.Conn](): Conn, reflect.TypeFor[*sql.DB](): DB,
}

// maxDepth is how deep in wrappers a transaction is looked for.
const maxDepth = 8

// executor is what all of them have: only what has it as well is looked into.
type executor interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
}

var executing = reflect.TypeFor[executor]()

// Find finds the transaction, connection or database of database/sql that a value is or wraps.
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

// concrete goes through interfaces and pointers to the value.
func concrete(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		if v.IsNil() {
			return reflect.Value{}
		}
		v = v.Elem()
	}
	return v
}

// field gives a field of a struct, if it has that one.
func field(v reflect.Value, name string) reflect.Value {
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}
