package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

func (a *app) migrateCommand() *cobra.Command {
	var preview, sql bool
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Create the store's tables, or bring them up to date",
		Long: `Runs the missing schema steps, each in its own transaction; several processes may migrate at once.
Creates a missing SQLite file. In PostgreSQL it also creates or replaces the functions for other
languages.`,
		Example: "  sluice migrate --db sqlite:jobs.db\n  sluice migrate --preview\n  sluice migrate --sql > steps.sql",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			if preview && sql {
				return usagef("give either --preview or --sql")
			}
			if !preview && !sql {
				steps, err := a.runMigrations(command.Context())
				if err != nil {
					return err
				}
				return a.printSteps(steps, "applied", "the schema is up to date")
			}
			steps, err := a.pendingMigrations(command.Context())
			if err != nil {
				return err
			}
			if sql {
				for _, step := range steps {
					if _, err := fmt.Fprintln(a.stdout, step.SQL); err != nil {
						return err
					}
				}
				return nil
			}
			return a.printSteps(steps, "would be applied", "nothing would be applied: the schema is up to date")
		},
	}
	command.Flags().BoolVar(&preview, "preview", false, "list pending steps, run none")
	command.Flags().BoolVar(&sql, "sql", false, "print the SQL of pending steps, run none")
	return command
}

func (a *app) printSteps(steps []sluice.Migration, what, none string) error {
	type printed struct {
		Version int    `json:"version"`
		Name    string `json:"name"`
		Status  string `json:"status"`
	}
	var rows []printed
	for _, step := range steps {
		rows = append(rows, printed{step.Version, step.Name, what})
	}
	if len(rows) == 0 && a.output == "table" {
		_, err := fmt.Fprintln(a.stdout, none)
		return err
	}
	return printList(a, rows, func(p printed) string { return fmt.Sprint(p.Version) }, []column[printed]{
		{"STEP", func(p printed) string { return stepNumber(p.Version) }, true},
		{"NAME", func(p printed) string { return p.Name }, false},
		{"STATUS", func(p printed) string { return p.Status }, false},
	})
}

// stepNumber formats the number of a schema step. The functions for other languages have none: they follow the steps.
func stepNumber(version int) string {
	if version == 0 {
		return "-"
	}
	return fmt.Sprint(version)
}
