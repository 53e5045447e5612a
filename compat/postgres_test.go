package compat_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	_ "github.com/lib/pq"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

func TestTransactionOfLibPQIsRefusedByName(t *testing.T) {
	db, err := sql.Open("postgres", pgtest.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	err = postgres.CompleteSQLTx(t.Context(), tx, &sluice.Claim{}, nil)
	if !errors.Is(err, sluice.ErrForeignTx) || !strings.Contains(err.Error(), "github.com/lib/pq") {
		t.Error(err)
	}
}
