package postgres

import (
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/health"
)

//go:embed sql/health_foreign.sql
var healthForeignSQL string

// foreignRow is an object in Sluice's schema that Sluice did not create.
type foreignRow struct {
	Kind, Name, OnTable, Definition string
}

// foreign finds objects of others in Sluice's schema. A trigger or rule of others can change or swallow a program's
// write unnoticed.
func (c *examination) foreign(ctx context.Context) error {
	made, err := readSchema()
	if err != nil {
		return err
	}
	expected := slices.Concat(made.tables, made.views, []string{"move", "moved"})
	triggers, err := list(ctx, c.store.pool, pgx.RowTo[string], followTriggersSQL)
	if err != nil {
		return err
	}
	rows, err := rowsOf[foreignRow](ctx, c.store.pool, healthForeignSQL, slices.Concat(made.triggers, triggers), expected)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.OnTable == "" {
			c.Find(health.SeverityNote, "foreign", "the "+row.Kind+" "+brief(row.Name)+" in the schema sluice is not Sluice's",
				"a later migration may want the name, and `drop schema` takes it along", "keep it in another schema: drop "+row.Kind+" sluice."+name(row.Name))
			continue
		}
		what := "the " + row.Kind + " " + brief(row.Name) + " on the table " + row.OnTable + " is not Sluice's"
		if row.Definition != "" {
			what += ": " + cutText(blanks.ReplaceAllString(row.Definition, " "), maxStatement)
		}
		c.Find(health.SeverityError, "foreign", what, "it can change, refuse or swallow what programs write, also entries of the audit",
			"drop "+row.Kind+" "+name(row.Name)+" on sluice."+name(row.OnTable))
	}
	if len(rows) == 0 {
		c.Well("foreign", "nobody else's triggers, rules, policies, views or tables")
	}
	return nil
}
