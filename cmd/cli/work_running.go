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

// programs are the running programs, each in its own process group, which an interrupt at the terminal does not reach.
type programs struct {
	guarded bool // by this same program as a process that ends them if this one is killed

	mu      sync.Mutex
	running map[string]*program // by run
	guard   *guard              // nil until a program runs, and if there can be none
	alive   time.Time           // last sign of life to the guard; zero: none are sent
	sooner  chan struct{}       // the guard needs more signs than before
	killed  bool
}

// program is one running program.
type program struct {
	cmd      *exec.Cmd     // nil: ended, its leftovers are searched
	patience time.Duration // see patienceOf
	frozen   bool          // this process froze for longer than patience
}

// errFrozen means that a program was ended because this process froze meanwhile.
var errFrozen = errors.New("the worker was stopped for so long that its programs were ended, before others could get their jobs")

// run runs a program to its end, then ends what it leaves behind. lease is its jobs' lease.
func (p *programs) run(cmd *exec.Cmd, lease time.Duration) error {
	runtime.LockOSThread() // if a program dies with its parent, it dies with the starting thread
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
	if left || err != nil { // a search of all processes outlasts many programs
		killRuns(map[string]bool{run: true})
	}
	p.ended(run)
	return err
}

// start starts a program and names its run.
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

// ended records that nothing is left of a run.
func (p *programs) ended(run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(run)
}

func (p *programs) forget(run string) {
	delete(p.running, run)
	p.tell("-" + run + "\n")
}

// line announces a run to the guard.
func (p *program) line(run string) string {
	return fmt.Sprintf("+%s %d\n", run, p.patience.Milliseconds())
}

// keepTelling sends the guard signs of life, often enough for the newest program.
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

// live sends the guard signs of life while programs run.
func (p *programs) live(sooner <-chan struct{}) {
	for interval := p.tellAlive(); interval > 0; interval = p.tellAlive() {
		select {
		case <-time.After(interval):
		case <-sooner:
		}
	}
}

// tellAlive sends a sign of life and returns the time until the next; 0: no program runs.
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

// noteFrozen marks the running programs if this process froze so long that the guard may have ended them.
func (p *programs) noteFrozen() {
	if p.alive.IsZero() {
		return
	}
	for _, one := range p.running {
		one.frozen = one.frozen || time.Since(p.alive) > one.patience
	}
	p.alive = time.Now()
}

// tell sends the guard a line, and starts a guard if none takes it.
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

// kill ends all programs at once and prevents new ones: the process is about to exit, and others will get its jobs.
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

// dismiss ends the guard when no more programs will run.
func (p *programs) dismiss() {
	p.mu.Lock()
	left := p.guard
	p.guard = nil
	p.mu.Unlock()
	left.dismiss()
}
