package pgtest

import (
	"errors"

	"github.com/sluice-queue/sluice/internal/debian"
)

// InstallPooler installs PgBouncer if it is missing and can be installed.
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

// Install installs PostgreSQL's programs if they are missing and can be installed. Otherwise the
// error names the command to run.
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
