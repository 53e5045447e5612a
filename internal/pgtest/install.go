package pgtest

import (
	"errors"

	"github.com/sluice-queue/sluice/internal/debian"
)

// InstallPooler makes sure that PgBouncer is there, and installs it where it can.
func InstallPooler() error {
	if _, err := findPooler(); err == nil {
		return nil
	}
	if err := debian.Install(poolerPackage); err != nil {
		return errors.Join(err, ErrNoPooler)
	}
	_, err := findPooler()
	return err
}

// Install makes sure that PostgreSQL's programs are there, and installs them where it can. Elsewhere
// the error names the command to run.
func Install() error {
	if _, err := findBinaries(); err == nil {
		return nil
	}
	if err := debian.Install("postgresql"); err != nil {
		return errors.Join(err, ErrNoPostgres)
	}
	_, err := findBinaries()
	return err
}
