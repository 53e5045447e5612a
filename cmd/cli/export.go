package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/export"
)

func (a *app) exportCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:     "export",
		Short:   "Export alert rules for Prometheus, or a dashboard for Grafana",
		Long:    `Writes files for other programs from the store's alert rules, or without a store from the presets.`,
		Example: "  sluice export prometheus-rules > sluice.rules.yml\n  sluice export grafana-dashboard > sluice.dashboard.json",
	})
	command.AddCommand(
		a.exportOf("prometheus-rules", "Write the alert rules as a Prometheus rule file", "sluice.rules.yml", export.PrometheusRules),
		a.exportOf("grafana-dashboard", "Write a Grafana dashboard: is work flowing, late or failing, who is held back, is the store healthy", "sluice.dashboard.json", export.GrafanaDashboard),
	)
	return command
}

func (a *app) exportOf(name, short, file string, write func([]alert.Rule) ([]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  sluice export " + name + " > " + file,
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			rules := alert.Presets()
			if a.db != "" {
				err := a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
					book, err := alert.Read(ctx, store)
					rules = book.Rules
					return err
				})
				if err != nil {
					return err
				}
			}
			text, err := write(rules)
			if err == nil {
				_, err = a.stdout.Write(text)
			}
			return err
		},
	}
}
