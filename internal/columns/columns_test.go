package columns_test

import (
	"testing"

	"github.com/sluice-queue/sluice/internal/columns"
)

const file = `-- The lists of a test.

-- A list with types, on two lines.
given: key text, payload bytea,
       after uuid[]

-- A list without types.
life: state, attempts
`

func TestStatementNamesAList(t *testing.T) {
	t.Parallel()
	lists := columns.Read(file)
	for statement, want := range map[string]string{
		"select {{j.given}}, l.id from job j": "select j.key, j.payload, j.after, l.id from job j",
		"select {{life}} from live":           "select state, attempts from live",
		"{{claim.sql}} {{max}} {{l.max}}":     "{{claim.sql}} {{max}} {{l.max}}",
	} {
		if got := lists.In(statement); got != want {
			t.Errorf("%q became %q, not %q", statement, got, want)
		}
	}
}

func TestListHasTypes(t *testing.T) {
	t.Parallel()
	got := columns.Read(file)["given"].Join(func(c columns.Column) string { return c.Name + " is " + c.Type })
	if want := "key is text, payload is bytea, after is uuid[]"; got != want {
		t.Errorf("the list is %q, not %q", got, want)
	}
}
