package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/presence"
)

// finding is one result of doctor.
type finding = health.Finding

func well(check, format string, args ...any) finding { return health.Well(check, format, args...) }

func (a *app) doctorCommand() *cobra.Command {
	thorough := false
	var engine engineFlags
	command := &cobra.Command{
		Use:     "doctor",
		Short:   "Check the store and the work, and say what to fix",
		Long:    "Checks that the store answers, is up to date and healthy, and that every job is served.\nWith --temporal or --engine it also checks that these engines have what the queues need, and workers for them.\nThrough a server, notes name what only a look beside it shows.\nEach finding says why it matters and how to fix it. Exit code 7 if something is wrong; notes do not count.",
		Example: "  sluice doctor\n  sluice doctor --temporal 127.0.0.1:7233\n  sluice doctor --thorough --timeout 10m\n  sluice doctor -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), a.timeout)
			defer cancel()
			findings, err := a.examine(ctx, thorough, engine)
			if err != nil {
				return err
			}
			if err := a.printFindings(findings); err != nil {
				return err
			}
			for _, f := range findings {
				if !f.Well {
					return silentExit(exitCheckFailed)
				}
			}
			return nil
		},
	}
	engine.addTo(command.Flags())
	command.Flags().BoolVar(&thorough, "thorough", false, "also check every page of the store and count the jobs of every batch, within --timeout")
	return command
}

func (a *app) printFindings(findings []finding) error {
	if a.output != "table" {
		return printList(a, findings, func(f finding) string { return f.Check }, nil)
	}
	for _, f := range findings {
		mark := "✔"
		switch {
		case !f.Well:
			mark = "✖"
		case f.Severity != "":
			mark = "•"
		}
		text := fmt.Sprintf("%s %-11s %s\n", mark, f.Check, strings.Map(printable, f.What))
		if f.Why != "" {
			text += fmt.Sprintf("  why:       %s\n", strings.Map(printable, f.Why))
		}
		if f.Repair != "" {
			text += fmt.Sprintf("  do:        %s\n", strings.Map(printable, f.Repair))
		}
		if _, err := fmt.Fprint(a.stdout, text); err != nil {
			return err
		}
	}
	return nil
}

// examine runs every check. A store that cannot be opened ends the checks.
func (a *app) examine(ctx context.Context, thorough bool, engine engineFlags) ([]finding, error) {
	if _, err := parseAddress(a.db); err != nil {
		return nil, err
	}
	begun := time.Now()
	store, err := a.open(ctx)
	switch {
	case errors.Is(err, sluice.ErrNotMigrated):
		return []finding{{Check: "schema", Severity: health.SeverityError, What: err.Error(), Why: "no command works without its tables", Repair: "sluice migrate"}}, nil
	case errors.Is(err, sluice.ErrNewerSchema):
		return []finding{{Check: "schema", Severity: health.SeverityError, What: err.Error(), Why: "this program does not know what the newer schema means", Repair: "install the newer sluice"}}, nil
	case err != nil:
		return denied(err)
	}
	defer a.close(store)
	findings := []finding{
		well("store", "%s answers in %s", redactURL(a.db), draw.Duration(time.Since(begun))),
	}
	report, err := health.Of(ctx, store, health.Options{Statements: true, Thorough: thorough})
	if err != nil {
		return nil, err
	}
	findings = append(findings, report.Findings...)
	workFindings, err := examineWork(ctx, store, a.client(store))
	if err != nil && report.Ill() { // the likely cause
		return append(findings, finding{
			Check: "work", Severity: health.SeverityError, What: "it could not be looked at: " + err.Error(), Why: "a store that is not well does not answer", Repair: "mend the above first",
		}), nil
	}
	if err != nil {
		return append(findings, workFindings...), err
	}
	engineFindings, err := a.examineEngines(ctx, a.client(store), engine)
	if err != nil {
		return append(findings, workFindings...), err
	}
	auditFindings, err := seen("audit", "whether entries wait long for a seal")(examineAudit(ctx, store))
	if err != nil || !thorough {
		return slices.Concat(findings, workFindings, engineFindings, auditFindings), err
	}
	batchFindings, err := seen("batches", "the count of each batch against its jobs")(examineBatches(ctx, store))
	return slices.Concat(findings, workFindings, engineFindings, auditFindings, batchFindings), err
}

// seen passes the findings of a check on. If a server does not show what the check looks at, a note says so.
func seen(check, what string) func([]finding, error) ([]finding, error) {
	return func(findings []finding, err error) ([]finding, error) {
		if !errors.Is(err, errors.ErrUnsupported) {
			return findings, err
		}
		return append(findings, finding{
			Check: check, Well: true, Severity: health.SeverityNote, What: "not looked at: " + what,
			Why: "the server does not show it", Repair: "sluice doctor beside the server, with --db sqlite:PATH or --db postgres://USER@HOST/DATABASE",
		}), nil
	}
}

// denied makes a finding of a store that the role may not read.
func denied(err error) ([]finding, error) {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "42501" {
		return nil, err
	}
	return []finding{{
		Check: "grant", Severity: health.SeverityError, What: server.Message, Why: "no command works without it",
		Repair: "as the owner of the schema, for this role: grant usage on schema sluice to ROLE; grant select, insert, update, delete on all tables in schema sluice to ROLE; revoke update, delete on sluice.audit, sluice.audit_seal, sluice.audit_batch from ROLE; revoke insert on sluice.audit from ROLE; grant insert (at, actor, object, name, event, job_id, generation, from_state, to_state, reason, before, after, act_id) on sluice.audit to ROLE; grant execute on function sluice._forget_audit to ROLE; grant usage on all sequences in schema sluice to ROLE; or, if it only reads: select sluice.grant_reader('ROLE')",
	}}, nil
}

// doctorQueues is the most queues that doctor checks.
const doctorQueues = 1000

// examineWork checks that somebody will take every waiting job.
func examineWork(ctx context.Context, store sluice.Store, client *sluice.Client) ([]finding, error) {
	holders, err := presence.Holders(ctx, store)
	if err != nil {
		return nil, err
	}
	tasks, err := presence.Tasks(ctx, store)
	if err != nil {
		return nil, err
	}
	queues, more, err := someQueues(ctx, client, nil, doctorQueues)
	if err != nil {
		return nil, err
	}
	rows, err := queueRows(ctx, store, queues)
	if err != nil {
		return nil, err
	}
	var out []finding
	if more {
		out = append(out, finding{
			Check: "queues", Severity: health.SeverityNote, Well: true, What: fmt.Sprintf("only the first %s queues by name were looked at", draw.Count(doctorQueues)),
			Why: "there are more, and each takes a look of its own", Repair: "ask of others by name: sluice queues NAME, sluice why ID",
		})
	}
	served := map[string]map[string]int{presence.RoleWorker: {}, presence.RoleDispatcher: {}}
	tended := false
	for _, h := range holders {
		out = append(out, examineHolder(h)...)
		if h.Silent() {
			continue
		}
		if !h.Mode.Claims() {
			continue
		}
		tended = tended || h.Role == presence.RoleUpkeep
		for _, queue := range h.Queues {
			if by := served[h.Role]; by != nil {
				by[queue]++
			}
		}
	}
	waiting := 0
	for _, q := range rows {
		waiting += q.Depth.Ready + q.Depth.Scheduled + q.Depth.Claimed + len(q.Scheduled)
		out = append(out, examineQueue(q, served)...)
		out = append(out, examineSettings(q, tended)...)
	}
	waits, err := examineWaiting(ctx, store, rows)
	if err != nil {
		return nil, err
	}
	limits, err := examineLimits(ctx, store, queues)
	if err != nil {
		return nil, err
	}
	out = slices.Concat(out, limits, waits)
	policy, err := admission.Of(ctx, store)
	if err != nil {
		return nil, err
	}
	if !tended && waiting == 0 {
		if waiting, err = waitingForUpkeep(ctx, store); err != nil {
			return nil, err
		}
	}
	return append(append(out, examinePolicy(policy)), examineTasks(tasks, tended, waiting)...), nil
}

// manyQueues is the used share of the queue limit above which doctor warns.
const manyQueues = 0.8

// examinePolicy checks that there is room for new queues.
func examinePolicy(policy admission.Policy) finding {
	what := fmt.Sprintf("%s of at most %s; %s", draw.Count(policy.Stored), draw.Count(policy.MaxQueues), madeBy(policy))
	if policy.Used() <= manyQueues {
		return well("queues", "%s", what)
	}
	out := finding{
		Check: "queues", Severity: health.SeverityWarning, What: what, Why: "no queue is made beyond that: a job that names a new one is refused",
		Repair: fmt.Sprintf("sluice queues rm QUEUE… --reason WHY; or sluice queues policy --max %d --reason WHY", min(2*policy.MaxQueues, admission.MaxMaxQueues)),
	}
	if policy.Stored >= policy.MaxQueues {
		out.Severity = health.SeverityError
	}
	return out
}

// runners names who must serve a queue, how many do, and the command that starts one.
func runners(q queueRow, served map[string]map[string]int) (who string, serving int, mend string) {
	if q.Engine != "" {
		return "dispatcher for the engine " + q.Engine, served[presence.RoleDispatcher][q.Name], "sluice dispatch " + q.Name + " " + presence.EngineFlag(q.Engine)
	}
	return "worker", served[presence.RoleWorker][q.Name], "sluice work " + q.Name + " -- COMMAND"
}

func examineQueue(q queueRow, served map[string]map[string]int) []finding {
	check := "queue"
	who, serving, mend := runners(q, served)
	switch {
	case q.Paused:
		return []finding{{
			Check: check, Severity: health.SeverityWarning, What: fmt.Sprintf("%s is %s; jobs ready: %s", q.Name, queueStatus(q), bounded(q.Depth.Ready)),
			Why: "a paused queue hands out nothing", Repair: "sluice resume " + q.Name,
		}}
	case q.Depth.Ready > 0 && serving == 0 && !sluice.IsInternalQueue(q.Name): // upkeep works on its own
		return []finding{{
			Check: check, Severity: health.SeverityError, What: fmt.Sprintf("%s has jobs ready (%s) and no %s; the first was due %s", q.Name, bounded(q.Depth.Ready), who, ago(q.Depth.OldestDue)),
			Why: "nobody claims them", Repair: mend,
		}}
	case q.full():
		return []finding{{
			Check: check, Severity: health.SeverityWarning, What: fmt.Sprintf("%s is full: max_waiting is %d", q.Name, q.MaxWaiting),
			Why: "enqueues are refused, or shed jobs of a lower priority", Repair: fmt.Sprintf("sluice settings set %s max_waiting=%d --reason \"more room\"", q.Name, 2*q.MaxWaiting),
		}}
	case q.Depth.Uncertain > 0:
		return []finding{{
			Check: check, Severity: health.SeverityWarning, What: fmt.Sprintf("%s has %s uncertain jobs", q.Name, bounded(q.Depth.Uncertain)),
			Why: "whether their runs did the work only a person can find out; until then they are not run again", Repair: "sluice jobs --queue " + q.Name + " --state uncertain",
		}}
	case q.Depth.Dead > 0:
		return []finding{{
			Check: check, Severity: health.SeverityWarning, What: fmt.Sprintf("%s has %s dead letters", q.Name, bounded(q.Depth.Dead)),
			Why: "they wait for a person", Repair: "sluice dead ls " + q.Name,
		}}
	}
	return []finding{well(check, "%s: %s ready, %s scheduled, %s claimed, %ss: %d", q.Name, bounded(q.Depth.Ready), bounded(q.Depth.Scheduled), bounded(q.Depth.Claimed), who, serving)}
}

// examineSettings finds stored values without effect, and scheduled changes that were not applied, whether upkeep runs
// or not.
func examineSettings(q queueRow, tended bool) []finding {
	var out []finding
	if q.Wrong != "" {
		out = append(out, finding{
			Check: "settings", Severity: health.SeverityWarning, What: q.Name + ": " + q.Wrong, Why: "what is stored is not what counts",
			Repair: "sluice settings undo " + q.Name,
		})
	}
	for _, change := range q.Scheduled {
		if change.Wrong != "" || change.late() {
			out = append(out, examineScheduled(change, tended))
		}
	}
	return out
}

// examineScheduled says how to fix a scheduled change that was not applied.
func examineScheduled(change scheduledRow, tended bool) finding {
	if change.ID == 0 { // the scheduled of the queue cannot be read
		return finding{
			Check: "scheduled", Severity: health.SeverityWarning, What: change.Wrong, Why: "a program that cannot read a change does not apply it",
			Repair: "sluice settings undo " + change.Queue,
		}
	}
	out := finding{
		Check: "scheduled", Severity: health.SeverityWarning, What: fmt.Sprintf("%s: scheduled change %d, %s: due since %s, %s", change.Queue, change.ID, change.Change, change.Next.UTC().Format(time.RFC3339), ago(change.Next)),
		Why: "the settings are not what they were planned to be by now", Repair: "sluice upkeep",
	}
	remove := fmt.Sprintf("sluice settings unschedule %s %d", change.Queue, change.ID)
	switch {
	case change.Wrong != "":
		out.What = fmt.Sprintf("%s: scheduled change %d, %s: %s; it was made %s", change.Queue, change.ID, change.Change, change.Wrong, ago(change.MadeAt))
		out.Why, out.Repair = "a program that cannot read a change does not apply it", remove
	case tended && change.Window != nil:
		out.Why += ", although upkeep runs: its machine may not know the time zone " + change.Window.Zone
		out.Repair = "look for `scheduled change not applied` in upkeep's log, and install the time zones (tzdata) there; or " + remove
	case tended:
		out.Why += ", although upkeep runs"
		out.Repair = "look for `tend settings` in upkeep's log"
	}
	return out
}
