package follow_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/follow"
)

func TestStatementsThatAreNotOneOfTheUsersOwnAreRefused(t *testing.T) {
	t.Parallel()
	ours := func(name string) bool { return name == "sluice_live" }
	for _, statement := range []string{
		"", "  -- nothing", "select 1", "with x as (select 1) update t set a = 1", "drop table t",
		"update t set a = 1; delete from t", "update t set a = 1;;", "update t set a = 'x", `update t set "a = 1`,
		"update t set a = $1", "update t set a = $x$ ; $x$", "update t set a = E'\\'; delete from t; --'", "update t set a = 1 /* ; ",
		"update t set a = 1 /* /* */ ; delete from t */", "update t set a = moved.nothing", "update t set a = `b`",
		"update sluice.live set state = 'queued'", `update "sluice"."live" set state = 'queued'`, "update SLUICE . live set a = 1",
		"delete from sluice_live", `delete from "sluice_live"`, "update t set a = 1 where b in (select seq from Sluice_Live)",
		"update t set a = '" + strings.Repeat("x", 10_000) + "'", "update t set a = \\",
	} {
		err := follow.Check(sluice.Follower{Name: "rows", Queue: "mail", Statement: statement}, ours)
		if !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%.60q: error %v", statement, err)
		}
	}
	for _, f := range []sluice.Follower{
		{Name: "", Queue: "mail"},
		{Name: "Rows", Queue: "mail"},
		{Name: "a;b", Queue: "mail"},
		{Name: strings.Repeat("a", 31), Queue: "mail"},
		{Name: "rows", Queue: ""},
		{Name: "rows", Queue: "mail", States: []sluice.State{"ready"}},
	} {
		f.Statement = "update t set a = 1"
		if err := follow.Check(f, ours); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%+v: error %v", f, err)
		}
	}
}

func TestColumnsOfTheMoveAreReplacedOutsideOfQuotesAlone(t *testing.T) {
	t.Parallel()
	statement := "update t set a = moved.state, \"moved.id\" = 'moved.id; it''s', b = Moved.Error -- moved.id ;\nwhere id = moved.id;"
	f := sluice.Follower{Name: "rows", Queue: "mail", Statement: statement}
	if err := follow.Check(f, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	got := follow.Expand(statement, follow.Expressions{"state": "S", "error": "E", "id": "I"})
	if want := "update t set a = S, \"moved.id\" = 'moved.id; it''s', b = E  where id = I"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The documented columns are those that there are.
func TestDocumentedColumnsAreAll(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../follower.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, found := range regexp.MustCompile(`(?m)^\t//\tmoved\.(\w+)`).FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, found[1])
	}
	if !slices.Equal(documented, follow.Columns()) {
		t.Errorf("documented are %v, there are %v", documented, follow.Columns())
	}
	for _, column := range follow.Columns() {
		if follow.Sample()[column] == "" {
			t.Errorf("the sample has no %s", column)
		}
	}
}
