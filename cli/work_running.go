package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"sync"
	"time"
)

// programs are those that run. Each is in a process group of its own, which an interrupt at the
// terminal does not reach.
type programs struct {
	guarded bool // by a process that ends them when this one is killed; that process is this very program

	mu      sync.Mutex
	running map[string]*program // by run
	guard   *guard              // nil until a program runs, and where there can be none
	alive   time.Time           // when the guard was told last that this process is alive; zero: nobody tells it
	sooner  chan struct{}       // it is to be told more often than before
	killed  bool
}

// program is one that runs.
type program struct {
	cmd      *exec.Cmd     // nil: it has ended, and what it left behind is looked for
	patience time.Duration // see patienceOf
	frozen   bool          // this process stood still for longer than that
}

// errFrozen says that a program was ended because this process stood still while it ran.
var errFrozen = errors.New("the worker was stopped for so long that its programs were ended, before others could get their jobs")

// run runs a program to its end, and ends what it leaves behind. The lease is that of its jobs.
func (p *programs) run(cmd *exec.Cmd, lease time.Duration) error {
	runtime.LockOSThread() // a program dies with the thread that started it, where it dies with its parent
	defer runtime.UnlockOSThread()
	run, err := p.start(cmd, patienceOf(lease))
	if err != nil {
		return err
	}
	err = cmd.Wait()
	p.mu.Lock()
	p.noteFrozen()
	if p.running[run].frozen && err != nil {
		err = errFrozen
	}
	p.running[run].cmd = nil
	left := killGroup(cmd)
	p.mu.Unlock()
	if left || err != nil { // to look through all processes takes longer than many a program
		killRuns(map[string]bool{run: true})
	}
	p.ended(run)
	return err
}

// start starts a program, and gives its run a name.
func (p *programs) start(cmd *exec.Cmd, patience time.Duration) (run string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return "", context.Canceled
	}
	if p.running == nil {
		p.running = make(map[string]*program)
	}
	run = rand.Text()
	cmd.Env = append(cmd.Env, runVariable+"="+path.Join(os.Getenv(runVariable), run))
	p.noteFrozen()
	started := &program{patience: patience}
	p.running[run] = started
	p.tell(started.line(run))
	if err := cmd.Start(); err != nil {
		p.forget(run)
		return "", err
	}
	started.cmd = cmd
	p.keepTelling()
	return run, nil
}

// ended says that nothing is left of a run.
func (p *programs) ended(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(run)
}

func (p *programs) forget(run string) {
	delete(p.running, run)
	p.tell("-" + run + "\n")
}

// line tells the guard of a run that begins.
func (p *program) line(run string) string {
	return fmt.Sprintf("+%s %d\n", run, p.patience.Milliseconds())
}

// keepTelling has the guard told that this process is alive, often enough for the program that began just now.
func (p *programs) keepTelling() {
	switch {
	case p.guard == nil:
	case p.alive.IsZero():
		p.alive, p.sooner = time.Now(), make(chan struct{}, 1)
		go p.live(p.sooner)
	default:
		select {
		case p.sooner <- struct{}{}:
		default:
		}
	}
}

// live tells the guard that this process is alive, as long as programs run.
func (p *programs) live(sooner <-chan struct{}) {
	for interval := p.tellAlive(); interval > 0; interval = p.tellAlive() {
		select {
		case <-time.After(interval):
		case <-sooner:
		}
	}
}

// tellAlive gives the time until it is to be told again; 0: no program runs.
func (p *programs) tellAlive() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.running) == 0 {
		p.alive = time.Time{}
		return 0
	}
	p.noteFrozen()
	p.tell("\n")
	open := make(patiences, len(p.running))
	for run, one := range p.running {
		open[run] = one.patience
	}
	return open.interval()
}

// noteFrozen notes of the programs that run whether this process stood still, so that the guard may have ended them.
func (p *programs) noteFrozen() {
	if p.alive.IsZero() {
		return
	}
	for _, one := range p.running {
		one.frozen = one.frozen || time.Since(p.alive) > one.patience
	}
	p.alive = time.Now()
}

// tell tells the guard of a run, and starts a guard if none takes it.
func (p *programs) tell(line string) {
	if !p.guarded || p.guard.say(line) {
		return
	}
	if p.guard != nil {
		_ = p.guard.lines.Close()
	}
	if p.guard = nil; len(p.running) == 0 {
		return
	}
	p.guard = startGuard()
	for run, one := range p.running {
		p.guard.say(one.line(run))
	}
}

// kill ends all of them at once, and keeps new ones from starting: the process is about to leave,
// and its jobs will be handed to others.
func (p *programs) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	left := make(map[string]bool)
	for run, one := range p.running {
		left[run] = true
		if one.cmd != nil {
			killGroup(one.cmd)
		}
	}
	killRuns(left)
}

// dismiss ends the guard, when no programs are to run any more.
func (p *programs) dismiss() {
	p.mu.Lock()
	left := p.guard
	p.guard = nil
	p.mu.Unlock()
	left.dismiss()
}
