package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/alert/webhook"
	"github.com/sluice-queue/sluice/audit"
)

func (a *app) silenceCommand() *cobra.Command {
	var silence alert.Silence
	var all bool
	command := &cobra.Command{
		Use:   "silence [RULE]",
		Short: "Stop alert notifications to webhooks for a while",
		Long: `Nobody is notified of a rule, in one queue with --queue, or of all rules with --all. Alerts still
appear in "sluice alerts ls" and the audit. Receivers learn of alerts that fire when the silence
ends, and always of the end of alerts they know.`,
		Example: "  sluice alerts silence unserved --queue mail --for 2h --reason \"the workers move\"\n  sluice alerts silence --all --for 30m --reason \"maintenance\"",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if named := len(args) > 0; named && all || !named && !all && silence.Queue == "" {
				return usagef("name a rule, or a queue with --queue, or say --all for every rule")
			}
			if len(args) > 0 {
				silence.Rule = args[0]
			}
			if silence.During <= 0 || a.reason == "" {
				return usagef("--for says for how long, and --reason why; both must be given")
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				saved, err := alert.StartSilence(ctx, store, silence, a.act(""))
				if err != nil {
					return unknownRule(err)
				}
				a.note("%s is silenced until %s; end that with `sluice alerts unsilence %s`", saved.Name(), saved.Until.Format(time.RFC3339), saved.ID)
				return printList(a, []alert.Silence{saved}, silenceID, silenceColumns())
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&silence.Queue, "queue", "", "only this queue; without a rule, all its rules")
	flags.Var(duration{&silence.During}, "for", "duration, such as 2h")
	flags.BoolVar(&all, "all", false, "all rules")
	return command
}

func silenceID(s alert.Silence) string { return s.ID.String() }

func silenceColumns() []column[alert.Silence] {
	return []column[alert.Silence]{
		{"ID", silenceID, false},
		{"RULE", func(s alert.Silence) string { return orDash(s.Rule) }, false},
		{"QUEUE", func(s alert.Silence) string { return orDash(s.Queue) }, false},
		{"UNTIL", func(s alert.Silence) string { return s.Until.Format(time.RFC3339) }, false},
		{"BY", func(s alert.Silence) string { return s.By }, false},
		{"REASON", func(s alert.Silence) string { return s.Reason }, false},
	}
}

func (a *app) unsilenceCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "unsilence ID",
		Short:   "End a silence early",
		Example: "  sluice alerts unsilence 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason \"it is done\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				err := alert.StopSilence(ctx, store, id, a.act(""))
				if errors.Is(err, sluice.ErrNotFound) {
					return codedError{err, exitNotFound, "look at `sluice alerts silences`; it may be over"}
				}
				if err == nil {
					a.note("the silence has ended")
				}
				return err
			})
		},
	}
}

func (a *app) silencesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "silences",
		Short:   "List current silences",
		Example: "  sluice alerts silences\n  sluice alerts silences -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				book, err := alert.Read(ctx, store)
				if err != nil {
					return err
				}
				if len(book.Silences) == 0 && a.output == "table" {
					a.note("nothing is silenced")
					return nil
				}
				return printList(a, book.Silences, silenceID, silenceColumns())
			})
		},
	}
}

func (a *app) alertHistoryCommand() *cobra.Command {
	var queue string
	var before int64
	var limit int
	command := &cobra.Command{
		Use:     "history [RULE]",
		Short:   "Show what fired and ended, and who changed or silenced rules, newest first",
		Example: "  sluice alerts history\n  sluice alerts history dead-letters --queue payments",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			filter := sluice.AuditFilter{Object: audit.ObjectAlert, Before: before, Limit: limit}
			if queue != "" && len(args) == 0 {
				return usagef("--queue needs a rule")
			}
			if len(args) > 0 {
				filter.Name = alert.RuleName(args[0], queue)
			}
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				entries, err := client.Audit(ctx, filter)
				if err != nil {
					return err
				}
				if len(entries) == 0 && a.output == "table" {
					a.note("nothing has fired or was changed")
					return nil
				}
				return printList(a, entries, func(e sluice.AuditEntry) string { return e.Name }, historyColumns())
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&queue, "queue", "", "only this queue (default: the general rule, or the store)")
	flags.Int64Var(&before, "before", 0, "continue after this number")
	flags.IntVar(&limit, "limit", 100, "most entries")
	return command
}

// historyColumns are the audit's columns without the states of jobs.
func historyColumns() []column[sluice.AuditEntry] {
	shown := auditColumns()
	return []column[sluice.AuditEntry]{
		shown[0], shown[1], shown[2], shown[3],
		{"ALERT", func(e sluice.AuditEntry) string { return e.Name }, false},
		shown[6],
	}
}

// webhookFlags name the webhooks that upkeep notifies of alerts.
type webhookFlags struct {
	addresses  []string
	secretFile string
}

const (
	webhookEnv = "SLUICE_ALERT_WEBHOOK"
	secretEnv  = "SLUICE_ALERT_SECRET"
)

func (f *webhookFlags) addTo(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.addresses, "alert-webhook", nil, "address that gets alerts by POST; repeatable (default: $"+webhookEnv+", separated by blanks)")
	flags.StringVar(&f.secretFile, "alert-secret-file", "", "file of the secret that signs webhook requests (default: $"+secretEnv+")")
}

// receivers makes a webhook of each address.
func (f *webhookFlags) receivers() ([]alert.Receiver, error) {
	if len(f.addresses) == 0 {
		return nil, nil
	}
	secret, err := f.secret()
	if err != nil {
		return nil, err
	}
	var out []alert.Receiver
	for _, address := range f.addresses {
		hook, err := webhook.New(address, webhook.Options{Secret: secret})
		if err != nil {
			return nil, usagef("--alert-webhook: %w", err)
		}
		out = append(out, hook)
	}
	return out, nil
}

// orEnvironment takes the addresses from the environment if no flag has one.
func (f *webhookFlags) orEnvironment() *webhookFlags {
	if len(f.addresses) == 0 {
		f.addresses = strings.Fields(os.Getenv(webhookEnv))
	}
	return f
}

func (f *webhookFlags) secret() ([]byte, error) {
	if f.secretFile == "" {
		return []byte(os.Getenv(secretEnv)), nil
	}
	text, err := os.ReadFile(f.secretFile)
	if err != nil {
		return nil, usagef("--alert-secret-file: %w", err)
	}
	if secret := strings.TrimSpace(string(text)); secret != "" {
		return []byte(secret), nil
	}
	return nil, usagef("--alert-secret-file: %s is empty", f.secretFile)
}
