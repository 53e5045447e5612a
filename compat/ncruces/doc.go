// Package ncruces tests the store on the driver ncruces/go-sqlite3. It is a package of its own because that driver and
// mattn's take the same name in database/sql.
package ncruces
