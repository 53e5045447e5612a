package cli

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path"
	"runtime"
	"sync"
)

// programs are those that run. Each is in a process group of its own, which an interrupt at the
// terminal does not reach.
type programs struct {
	guarded bool // by a process that ends them when this one is killed; that process is this very program

	mu      sync.Mutex
	running map[string]*exec.Cmd // by run; nil: it has ended, and what it left behind is looked for
	guard   *guard               // nil until a program runs, and where there can be none
	killed  bool
}

// run runs a program to its end, and ends what it leaves behind.
func (p *programs) run(cmd *exec.Cmd) error {
	runtime.LockOSThread() // a program dies with the thread that started it, where it dies with its parent
	defer runtime.UnlockOSThread()
	run, err := p.start(cmd)
	if err != nil {
		return err
	}
	err = cmd.Wait()
	p.mu.Lock()
	p.running[run] = nil
	left := killGroup(cmd)
	p.mu.Unlock()
	if left || err != nil { // to look through all processes takes longer than many a program
		killRuns(map[string]bool{run: true})
	}
	p.ended(run)
	return err
}

// start starts a program, and gives its run a name.
func (p *programs) start(cmd *exec.Cmd) (run string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return "", context.Canceled
	}
	if p.running == nil {
		p.running = make(map[string]*exec.Cmd)
	}
	run = rand.Text()
	cmd.Env = append(cmd.Env, runVariable+"="+path.Join(os.Getenv(runVariable), run))
	p.running[run] = nil
	p.tell("+" + run + "\n")
	if err := cmd.Start(); err != nil {
		p.forget(run)
		return "", err
	}
	p.running[run] = cmd
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
	for run := range p.running {
		p.guard.say("+" + run + "\n")
	}
}

// kill ends all of them at once, and keeps new ones from starting: the process is about to leave,
// and its jobs will be handed to others.
func (p *programs) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	left := make(map[string]bool)
	for run, cmd := range p.running {
		left[run] = true
		if cmd != nil {
			killGroup(cmd)
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
