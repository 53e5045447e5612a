package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// policyRow says which new queues the store takes.
type policyRow struct {
	Queues    int       `json:"queues"`
	MaxQueues int       `json:"max_queues"`
	Declared  bool      `json:"declared"`
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

func policyRowOf(p admission.Policy) policyRow {
	return policyRow{p.Stored, p.MaxQueues, p.Declared, p.ChangedAt, p.ChangedBy, p.Reason}
}

func (a *app) queuesPolicyCommand() *cobra.Command {
	declared, maxQueues := "", 0
	command := &cobra.Command{
		Use:   "policy",
		Short: "Show or change which new queues the store takes",
		Long: `Without flags it shows the number of queues, its limit, and whether jobs may create queues.

The first job that names a queue creates it. With --declared on, jobs for undeclared queues are
refused, and nothing is stored. "sluice settings set QUEUE lease=1m", or EnsureQueue in a program,
declares a queue. No way works beyond --max queues. Changes count for all processes from the next
new queue on; stored queues stay.`,
		Example: "  sluice queues policy\n  sluice queues policy --declared on --reason \"a misspelt name cost us a day\"\n  sluice queues policy --max 20000 --reason \"a queue for each customer\"",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			if declared != "" && declared != "on" && declared != "off" {
				return usagef("--declared %q must be on or off", declared)
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				policy, err := admission.Of(ctx, store)
				if err != nil {
					return err
				}
				next := policy
				if declared != "" {
					next.Declared = declared == "on"
				}
				if command.Flags().Changed("max") {
					next.MaxQueues = maxQueues
				}
				if next != policy {
					if policy, err = admission.Save(ctx, store, next, a.act("")); err != nil {
						return err
					}
				}
				return a.printPolicy(policy)
			})
		},
	}
	command.Flags().StringVar(&declared, "declared", "", "on: queues must be declared; off: the first job creates its queue")
	command.Flags().IntVar(&maxQueues, "max", 0, fmt.Sprintf("most queues, 1 to %s", draw.Count(admission.MaxMaxQueues)))
	return command
}

func (a *app) printPolicy(policy admission.Policy) error {
	return a.printOne(policyRowOf(policy), func() error {
		line, instant := detailLines(a.stdout, time.RFC3339)
		line("queues", fmt.Sprintf("%s of at most %s", draw.Count(policy.Stored), draw.Count(policy.MaxQueues)))
		line("new ones", madeBy(policy))
		instant("changed", policy.ChangedAt)
		line("by", policy.ChangedBy)
		line("reason", policy.Reason)
		return nil
	})
}

// madeBy says who creates new queues.
func madeBy(policy admission.Policy) string {
	if policy.Declared {
		return "must be declared: sluice settings set QUEUE lease=1m"
	}
	return "the first job makes its queue"
}
