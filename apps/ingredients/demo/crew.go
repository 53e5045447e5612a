package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/held.sql
var heldSQL string

//go:embed sql/open.sql
var openSQL string

//go:embed sql/gone.sql
var goneSQL string

// perLanguage is how many processes each language has; the first of them is killed.
const perLanguage = 2

// process is a matcher that runs.
type process struct {
	*exec.Cmd
	language string
	name     string // that of its connections
	ended    chan error
}

// start starts the processes of a language.
func (d *demo) start(language string, command []string, env ...string) error {
	for i := range perLanguage {
		p := &process{exec.Command(command[0], command[1:]...), language, fmt.Sprintf("ingredients %s %d", language, i+1), make(chan error, 1)}
		p.Env = append(append(os.Environ(), env...), "INGREDIENTS_DB="+d.url, "PGAPPNAME="+p.name)
		p.Stdout, p.Stderr = d.log, d.log
		if err := p.Start(); err != nil {
			return err
		}
		go func() { p.ended <- p.Wait() }()
		d.crew = append(d.crew, p)
	}
	return nil
}

// startAll starts the matchers in all languages.
func (d *demo) startAll() error {
	seconds := func(t time.Duration) string { return strconv.FormatFloat(t.Seconds(), 'f', -1, 64) }
	flags := []string{"--lease", seconds(d.Lease), "--work", seconds(d.Work)}
	return errors.Join(
		d.start("python", append(d.python.Command, flags...)),
		d.start("node", append(d.node.Command, flags...), d.node.Env...),
		d.start("go", append(d.Matcher, "-work", d.Work.String(), "-slots", "3")),
	)
}

// victim is a process that was killed, and the jobs that it held.
type victim struct {
	language string
	pid      int
	held     []string
}

// killOneEach kills the first process of each language, in the middle of its work.
func (d *demo) killOneEach(ctx context.Context) error {
	for i := 0; i < len(d.crew); i += perLanguage {
		v, err := d.killAlone(ctx, d.crew[i])
		if err != nil {
			return fmt.Errorf("kill a matcher in %s: %w", d.crew[i].language, err)
		}
		d.victims = append(d.victims, v)
		d.tell("*** a matcher in %s is killed (SIGKILL) between an effect and its commit, with %d jobs in its hands ***", v.language, len(v.held))
	}
	return nil
}

// killAlone lets the others stand still meanwhile, so that there is something left to hold.
func (d *demo) killAlone(ctx context.Context, p *process) (v victim, err error) {
	for _, other := range d.crew {
		if other == p || d.killed(other) {
			continue
		}
		if err := other.Process.Signal(syscall.SIGSTOP); err != nil {
			return v, err
		}
		defer func() { err = errors.Join(err, other.Process.Signal(syscall.SIGCONT)) }()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("it never had jobs in its hands and a transaction open"))
	defer cancel()
	return d.kill(ctx, p)
}

// kill stops a process again and again to look where it is, until it has written the effect of a job and not committed
// it. Then it is killed.
func (d *demo) kill(ctx context.Context, p *process) (v victim, err error) {
	v = victim{language: p.language, pid: p.Process.Pid}
	err = until(ctx, 2*time.Millisecond, func() (open bool, err error) {
		if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
			return false, err
		}
		if err := d.kitchen.Pool().QueryRow(ctx, openSQL, p.name).Scan(&open); open || err != nil {
			return open, err
		}
		return false, p.Process.Signal(syscall.SIGCONT)
	})
	if err != nil {
		return v, err
	}
	if err := p.Process.Kill(); err != nil {
		return v, err
	}
	// What it has sent counts, until the server has seen that it is gone.
	err = until(ctx, 10*time.Millisecond, func() (gone bool, err error) {
		err = d.kitchen.Pool().QueryRow(ctx, goneSQL, p.name).Scan(&gone)
		return gone, err
	})
	if err == nil {
		v.held, err = held(ctx, d.kitchen.Pool(), v.pid)
	}
	return v, err
}

// held lists the jobs that a process holds.
func held(ctx context.Context, pool *pgxpool.Pool, pid int) ([]string, error) {
	rows, err := pool.Query(ctx, heldSQL, strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// killed reports whether a process was killed.
func (d *demo) killed(p *process) bool {
	return slices.ContainsFunc(d.victims, func(v victim) bool { return v.pid == p.Process.Pid })
}

// until looks again and again, until what it waits for is so.
func until(ctx context.Context, every time.Duration, look func() (bool, error)) error {
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(every):
		}
	}
}

// end lets the processes that are left drain, and kills what does not.
func (d *demo) end() error {
	var errs []error
	for _, p := range d.crew {
		_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, p := range d.crew {
		select {
		case err := <-p.ended:
			if err != nil && !d.killed(p) {
				errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			}
		case <-time.After(20 * time.Second):
			errs = append(errs, fmt.Errorf("%s does not end", p.name), p.Process.Kill(), <-p.ended)
		}
	}
	return errors.Join(errs...)
}
