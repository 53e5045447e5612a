package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
)

func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	err := typed(fmt.Errorf("write: %w", &pgconn.PgError{Code: "53100", Message: "could not extend file"}))
	if !errors.Is(err, sluice.ErrDiskFull) || !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("a full disk is told as %v", err)
	}
}
