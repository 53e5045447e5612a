package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"modernc.org/libc"
	modernc "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// openGuarded opens a database whose connections cannot change the schema of Sluice, whichever
// statement runs on them. A running program needs no such right, so no mistake and no injected
// statement can use it. Other tables of the file belong to the caller, who may create and drop
// them.
func openGuarded(dsn string) (*sql.DB, error) {
	connector, err := modernc.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(guarded{connector}), nil
}

// guarded is a connector that installs a guard on each of its connections.
type guarded struct{ driver.Connector }

// Connect opens a connection.
func (g guarded) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := g.Connector.Connect(ctx)
	if err == nil {
		guard(conn)
	}
	return conn, err
}

// guard makes SQLite call authorize when a statement is prepared on a connection. The driver has no
// call for this, so guard reads SQLite's handle out of the connection. A driver version that keeps
// the handle elsewhere leaves the connection unguarded; a test would fail then.
func guard(conn driver.Conn) {
	inner := reflect.Indirect(reflect.ValueOf(conn))
	if inner.Kind() != reflect.Struct {
		return
	}
	handle := inner.FieldByName("db")
	if !handle.IsValid() || handle.Kind() != reflect.Uintptr {
		return
	}
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_set_authorizer(tls, uintptr(handle.Uint()), authorizer, 0)
}

// authorizer is authorize as SQLite calls it. A variable instead of a closure, so that its pointer
// stays valid.
var authorizer = *(*uintptr)(unsafe.Pointer(&struct {
	f func(*libc.TLS, uintptr, int32, uintptr, uintptr, uintptr, uintptr) int32
}{authorize}))

// authorize decides whether a statement may do one action.
func authorize(_ *libc.TLS, _ uintptr, action int32, first, second, database, _ uintptr) int32 {
	switch action {
	case lib.SQLITE_READ, lib.SQLITE_SELECT, lib.SQLITE_INSERT, lib.SQLITE_UPDATE, lib.SQLITE_DELETE, lib.SQLITE_FUNCTION,
		lib.SQLITE_RECURSIVE, lib.SQLITE_TRANSACTION, lib.SQLITE_SAVEPOINT:
		return lib.SQLITE_OK // nearly all calls
	}
	if refuses(action, libc.GoString(first), libc.GoString(second), libc.GoString(database)) {
		return lib.SQLITE_DENY
	}
	return lib.SQLITE_OK
}

// refuses reports whether a statement must not do an action. The meaning of first and second
// depends on the action; see https://www.sqlite.org/c3ref/c_alter_table.html.
func refuses(action int32, first, second, database string) bool {
	switch action {
	case lib.SQLITE_ATTACH:
		return first != "" && first != ":memory:" // another file; VACUUM attaches one without a name
	case lib.SQLITE_PRAGMA:
		return second != "" && !harmless(strings.ToLower(first), strings.ToLower(second))
	}
	if !slices.Contains(schemaActions, action) || strings.HasPrefix(database, vacuumDatabase) {
		return false
	}
	return sluices(first) || sluices(second)
}

// sluices reports whether a name belongs to Sluice.
func sluices(name string) bool { return strings.HasPrefix(strings.ToLower(name), "sluice_") }

// vacuumDatabase is the prefix of the name of the copy in which VACUUM rebuilds the tables.
const vacuumDatabase = "vacuum_"

// schemaActions change the schema. They include temporary objects, which would hide the store's
// objects on their connection.
var schemaActions = []int32{
	lib.SQLITE_CREATE_INDEX, lib.SQLITE_CREATE_TABLE, lib.SQLITE_CREATE_TRIGGER, lib.SQLITE_CREATE_VIEW, lib.SQLITE_CREATE_VTABLE,
	lib.SQLITE_CREATE_TEMP_INDEX, lib.SQLITE_CREATE_TEMP_TABLE, lib.SQLITE_CREATE_TEMP_TRIGGER, lib.SQLITE_CREATE_TEMP_VIEW,
	lib.SQLITE_DROP_INDEX, lib.SQLITE_DROP_TABLE, lib.SQLITE_DROP_TRIGGER, lib.SQLITE_DROP_VIEW, lib.SQLITE_DROP_VTABLE,
	lib.SQLITE_DROP_TEMP_INDEX, lib.SQLITE_DROP_TEMP_TABLE, lib.SQLITE_DROP_TEMP_TRIGGER, lib.SQLITE_DROP_TEMP_VIEW,
	lib.SQLITE_ALTER_TABLE,
}

// harmless reports whether a pragma may have an argument: it only reads, or sets something safe for
// its connection. All others could change the file or its schema, or switch off its protection.
func harmless(pragma, value string) bool {
	if pragma == "journal_mode" {
		return value == "wal" // the store keeps this mode
	}
	return slices.Contains(harmlessPragmas, pragma)
}

var harmlessPragmas = []string{
	"analysis_limit", "automatic_index", "busy_timeout", "cache_size", "cache_spill", "case_sensitive_like", "defer_foreign_keys",
	"foreign_key_check", "foreign_key_list", "foreign_keys", "hard_heap_limit", "incremental_vacuum", "index_info", "index_list",
	"index_xinfo", "integrity_check", "journal_size_limit", "mmap_size", "optimize", "query_only", "quick_check", "read_uncommitted",
	"recursive_triggers", "secure_delete", "soft_heap_limit", "synchronous", "table_info", "table_list", "table_xinfo", "temp_store",
	"threads", "wal_autocheckpoint", "wal_checkpoint",
}
