// Package compat tests the store on SQLite with the drivers and ORMs of others, as people use them. It is a module of its
// own, so that nobody else pays for them. The driver of mattn needs C.
package compat
