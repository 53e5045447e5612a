package sluice

// Migration is a numbered step of a store's schema, or what is made after the steps.
type Migration struct {
	// Version is the step's number, from 1; 0: it is no step, and is made again whenever its text is another one.
	Version int
	Name    string
	// SQL is what the step runs.
	SQL string
	// WorksFrom is the step that a program must know to work on a database which has had this one;
	// it lets old and new programs run side by side during an upgrade.
	WorksFrom int
	// Checksum tells whether the step was changed since it was applied.
	Checksum string
}
