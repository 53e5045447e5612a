// Package compat tests Sluice with the libraries of others, as people use them: SQLite drivers, ORMs, and the client of
// Sentry. It is a module of its own, so that nobody else pays for them. The driver of mattn needs C.
package compat
