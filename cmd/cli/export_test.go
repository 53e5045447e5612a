package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/worker"
)

// These give the tests in package cli_test access to inner parts of package cli.
var (
	ParseJobLine   = jobline.Parse
	ParseDuration  = jobline.ParseDuration
	ParseInstant   = jobline.ParseInstant
	ParseLabels    = parseLabels
	JobFieldNames  = jobline.FieldNames
	RedactURL      = redactURL
	Redact         = redact
	CutMiddle      = cut
	Money          = money
	TraceExporters = traceExporters
)

// ParseConfig reads the text of a file of profiles.
func ParseConfig(text string) (profile string, profiles map[string]map[string]string, err error) {
	read, err := parseConfig(text)
	return read.profile, read.profiles, err
}

// Run runs a command line in this process, and returns its output and exit code.
func Run(ctx context.Context, args ...string) (printed string, code int) {
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, programs: programs{guarded: true}}
	code = a.run(ctx, args)
	return out.String(), code
}

// Patiently is Main with time limits for a busy machine.
func Patiently(args []string) int {
	defaultTimeout, slowOpen = 10*time.Minute, 10*time.Minute
	return Main(args)
}

// CheckAnswer returns the error in an answer line that a program printed, or nil.
func CheckAnswer(line []byte) error {
	_, err := readAnswer(line)
	return err
}

// Listen returns a writer for a program's output, and a context that ends with a cause when the output pauses for too
// long.
func Listen(within time.Duration) (io.Writer, context.Context) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return listen(within, cancel), ctx
}

// EscapeUnseen writes JSON as it is printed.
var EscapeUnseen = escapeUnseen

// Detail renders one detail line of a thing.
func Detail(name, value string) string {
	var text strings.Builder
	line, _ := detailLines(&text, time.RFC3339)
	line(name, value)
	return text.String()
}

// SaidLines returns a writer that splits a program's standard error into lines, and the function that ends it.
func SaidLines(each func(line string, cut int)) (w io.Writer, end func()) {
	lines := &lineLog{each: each, clean: func(text string) string { return text }}
	return lines, lines.end
}

// Batch returns the handler of `work --batch` for a program. One process of the program runs at a time.
func Batch(size int, program ...string) func(context.Context, *worker.Job[json.RawMessage]) error {
	one := runner{
		program: program, running: &programs{}, settings: func(context.Context, string) sluice.Settings { return sluice.DefaultSettings() }, log: event.NewLog(slog.New(slog.DiscardHandler), "", 0),
		said:  event.NewLog(slog.New(slog.DiscardHandler), "", 0),
		clean: func(text string) string { return text },
	}
	return (&batches{runner: one, size: size, programs: 1}).run
}

// GuardRuns runs a guard that reads the messages of its worker.
func GuardRuns(worker io.Reader) { guardRuns(worker) }

// ParseAddress reads the value of --db.
func ParseAddress(text string) (postgres, sqlite string, err error) {
	at, err := parseAddress(text)
	return at.postgres, at.sqlite, err
}

// Engines describes how the program would reach each engine that the flags of a command name.
func Engines(optional bool, args ...string) (all []string, err error) {
	var f engineFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.addTo(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	engines, err := f.all(optional)
	for _, at := range engines {
		all = append(all, fmt.Sprintf("%s: %+v namespace %q, %d calls", at.name, at.server, at.namespace, at.parallel))
	}
	return all, err
}

// OpenEngines opens the engines that the flags of a command name, and closes them again.
func OpenEngines(args ...string) error {
	var f engineFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.addTo(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	_, done, err := f.open(true, slog.New(slog.DiscardHandler))
	if err == nil {
		done()
	}
	return err
}

// ExitCode is one of the exit codes.
type ExitCode struct {
	Code          int
	Name, Meaning string
}

// ExitCodes returns all exit codes.
func ExitCodes() (all []ExitCode) {
	for _, c := range exitCodes() {
		all = append(all, ExitCode{c.code, c.name, c.meaning})
	}
	return all
}

// Root returns the root command, for tests that inspect it.
func Root() *cobra.Command {
	return (&app{stdin: os.Stdin, stdout: io.Discard, stderr: io.Discard}).root()
}

// Explain writes the explanation of an error to stderr, and returns the exit code.
func Explain(db string, stderr io.Writer, err error) int {
	a := &app{db: db, stderr: stderr}
	return a.explain(&cobra.Command{Use: "sluice"}, err)
}

// FitTable returns the titles and cells of a row that fit into a terminal of a given width.
func FitTable(titles, row []string, width int) (keptTitles, cells []string) {
	rows := [][]string{row}
	kept := fit(rows, titles, width)
	return pick(titles, kept), pick(rows[0], kept)
}

// DemoVerdict returns the demo's sentence about its checks.
func DemoVerdict(balances bool, pace *demo.Pace, tiers []demo.Tier) string {
	d := &demoRun{flags: demoFlags{tiers: tiers != nil}, balances: balances, summary: demoSummary{Pace: pace, Tiers: tiers}}
	d.summary.Check.Posted = 5
	return d.verdict()
}

// ExamineScheduled returns the findings of doctor about a queue's scheduled changes.
func ExamineScheduled(queue sluice.Queue, tended bool) []finding {
	return examineSettings(queueRow{Scheduled: scheduledRows([]sluice.Queue{queue})}, tended)
}

// WarnOfRate returns the question that a command asks before it raises a queue's rate.
func WarnOfRate(ctx context.Context, store sluice.Store, client *sluice.Client, queue string, pairs ...string) (string, error) {
	return warnOfRate(ctx, store, client, queue, pairs)
}

// StoreLines stores lines as `sluice enqueue --file` does. It returns the progress report, and the error that cut it
// off.
func StoreLines(ctx context.Context, client *sluice.Client, lines string) (told string, err error) {
	var out bytes.Buffer
	a := &app{stderr: &out}
	l := lineEnqueuer{app: a, client: client, in: strings.NewReader(lines), queue: "mail", batchSize: 2, run: newFileRun()}
	done, err := l.store(ctx)
	if err != nil {
		err = a.cutOff(ctx, done, err)
	}
	return out.String(), err
}

// ScheduledTexts returns three texts of a queue's first scheduled change: its effect, its next time, and its note.
func ScheduledTexts(queue sluice.Queue) (what, next, note string) {
	row := scheduledRows([]sluice.Queue{queue})[0]
	return row.what(), row.next(), row.note()
}

// OpenShop fills a store as `sluice dev` does when it starts.
func OpenShop(ctx context.Context, store sluice.Store) error {
	a := &app{stdout: io.Discard, stderr: io.Discard, log: logFlags{silent: true}}
	return (&server{app: a}).openShop(ctx, store, false)
}
