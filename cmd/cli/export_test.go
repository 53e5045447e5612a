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

// What the tests of this package look at from outside.
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

// Run runs a command line in this process, and gives what it prints and its exit code.
func Run(ctx context.Context, args ...string) (printed string, code int) {
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, programs: programs{guarded: true}}
	code = a.run(ctx, args)
	return out.String(), code
}

// Patiently is Main on a machine that is busy with much else.
func Patiently(args []string) int {
	defaultTimeout, slowOpen = 10*time.Minute, 10*time.Minute
	return Main(args)
}

// CheckAnswer says what is wrong with a line that a program printed.
func CheckAnswer(line []byte) error {
	_, err := readAnswer(line)
	return err
}

// Listen gives what a program writes to, and a context that ends with a cause when it is silent for too long.
func Listen(within time.Duration) (io.Writer, context.Context) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return listen(within, cancel), ctx
}

// EscapeUnseen writes JSON as it is printed.
var EscapeUnseen = escapeUnseen

// Detail gives a line of what is told of one thing.
func Detail(name, value string) string {
	var text strings.Builder
	line, _ := detailLines(&text, time.RFC3339)
	line(name, value)
	return text.String()
}

// SaidLines gives what a program's standard error is written to, line by line, and what ends it.
func SaidLines(each func(line string, cut int)) (w io.Writer, end func()) {
	lines := &lineLog{each: each, clean: func(text string) string { return text }}
	return lines, lines.end
}

// Batch gives the handler of `work --batch` for a program, of which one runs at a time.
func Batch(size int, program ...string) func(context.Context, *worker.Job[json.RawMessage]) error {
	one := runner{
		program: program, running: &programs{}, settings: func(context.Context, string) sluice.Settings { return sluice.DefaultSettings() }, log: event.NewLog(slog.New(slog.DiscardHandler), "", 0),
		said:  event.NewLog(slog.New(slog.DiscardHandler), "", 0),
		clean: func(text string) string { return text },
	}
	return (&batches{runner: one, size: size, programs: 1}).run
}

// GuardRuns is what a guard does with what its worker says.
func GuardRuns(worker io.Reader) { guardRuns(worker) }

// ParseAddress reads the value of --db.
func ParseAddress(text string) (postgres, sqlite string, err error) {
	at, err := parseAddress(text)
	return at.postgres, at.sqlite, err
}

// Engines tells how each engine is reached that the flags of a command name.
func Engines(optional bool, args ...string) (all []string, err error) {
	var f engineFlags
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.addTo(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	engines, err := f.all(optional)
	for _, at := range engines {
		all = append(all, fmt.Sprintf("%s: %+v namespace %q key in %q, %d calls", at.name, at.server, at.namespace, at.apiKeyFile, at.parallel))
	}
	return all, err
}

// OpenEngines opens the engines that the flags of a command name, and closes them.
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

// ExitCodes gives all of them.
func ExitCodes() (all []ExitCode) {
	for _, c := range exitCodes() {
		all = append(all, ExitCode{c.code, c.name, c.meaning})
	}
	return all
}

// Root gives the command line, to be looked at.
func Root() *cobra.Command {
	return (&app{stdin: os.Stdin, stdout: io.Discard, stderr: io.Discard}).root()
}

// Explain gives what a person is told of an error, and the exit code.
func Explain(db string, stderr io.Writer, err error) int {
	a := &app{db: db, stderr: stderr}
	return a.explain(&cobra.Command{Use: "sluice"}, err)
}

// FitTable gives the titles and cells of a row that a terminal of a width has room for.
func FitTable(titles, row []string, width int) (keptTitles, cells []string) {
	rows := [][]string{row}
	kept := fit(rows, titles, width)
	return pick(titles, kept), pick(rows[0], kept)
}

// DemoVerdict gives what the demo says of its checks.
func DemoVerdict(balances bool, pace *demo.Pace, tiers []demo.Tier) string {
	d := &demoRun{flags: demoFlags{tiers: tiers != nil}, balances: balances, summary: demoSummary{Pace: pace, Tiers: tiers}}
	d.summary.Check.Posted = 5
	return d.verdict()
}

// ExamineScheduled is what doctor finds of a queue's plans.
func ExamineScheduled(queue sluice.Queue, tended bool) []finding {
	return examineSettings(queueRow{Scheduled: scheduledRows([]sluice.Queue{queue})}, tended)
}

// WarnOfRate is what a person is asked before settings of a queue are changed.
func WarnOfRate(ctx context.Context, store sluice.Store, client *sluice.Client, queue string, pairs ...string) (string, error) {
	return warnOfRate(ctx, store, client, queue, pairs)
}

// StoreLines stores lines as `sluice enqueue --file` does, and gives how far it came, and what it was cut off by.
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

// ScheduledTexts are the texts of a queue's first scheduled change: what it will do, when, and the note.
func ScheduledTexts(queue sluice.Queue) (what, next, note string) {
	row := scheduledRows([]sluice.Queue{queue})[0]
	return row.what(), row.next(), row.note()
}
