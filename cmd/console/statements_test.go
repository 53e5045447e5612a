package console_test

import (
	"testing"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTheStoreSaysHowToKnowTheSlowestStatements(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(t.Context(), pgtest.NewDatabase(t), postgres.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	as := func(role access.Role) *site {
		return openOver(t, store, access.Caller{Name: "ann", Role: role}, console.Options{}, httpapi.Options{})
	}
	as(access.RoleOperator).has("/store", "Slowest statements", "Not known: the extension pg_stat_statements is not there. To do:", "create extension pg_stat_statements")
	as(access.RoleViewer).has("/store", "The role viewer may not see statements.", "-create extension")
	open(t, access.RoleOperator, console.Options{}).has("/store", "-Slowest statements")
}
