package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestADatabaseOfAnotherEncodingIsRefused migrates a database in LATIN1. Texts of programs with different settings would differ there.
func TestADatabaseOfAnotherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	at := inLatin1(t)
	_, err := postgres.Migrate(t.Context(), at)
	if !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), "has the encoding LATIN1, and must have UTF8") {
		t.Errorf("migrate: %v", err)
	}
	if _, err := postgres.Open(t.Context(), at, postgres.Options{Migrate: true}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("open: %v", err)
	}
}

// TestTextsAreThoseOfOtherPrograms stores a job where sessions have another encoding than UTF-8. Other programs read the same texts.
func TestTextsAreThoseOfOtherPrograms(t *testing.T) {
	t.Parallel()
	at := migrated.Copy(t)
	other, err := pgx.Connect(t.Context(), at+"&client_encoding=UTF8")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(t.Context()) }()
	if _, err := other.Exec(t.Context(), "alter database "+other.Config().Database+" set client_encoding = 'LATIN1'"); err != nil {
		t.Fatal(err)
	}
	client := sluice.NewClient(openStore(t, at), sluice.ClientOptions{})
	job := sluice.NewJob{Queue: "mail", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "café"}}
	if _, err := client.Enqueue(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	var tenant string
	if err := other.QueryRow(t.Context(), "select tenant from sluice.job").Scan(&tenant); err != nil || tenant != job.Tenant {
		t.Errorf("another program reads the tenant %q, %v", tenant, err)
	}
}

// inLatin1 makes a database whose encoding is LATIN1, and returns its address.
func inLatin1(t *testing.T) string {
	t.Helper()
	at := pgtest.NewDatabase(t)
	parsed, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), pgtest.NewDatabase(t)) // a database is dropped from another one
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	name := strings.TrimPrefix(parsed.Path, "/")
	for _, statement := range []string{"drop database " + name, "create database " + name + " encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return at
}
