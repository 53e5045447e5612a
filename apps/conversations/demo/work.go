package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice/apps/conversations/stages"
)

// process is a worker in a process of its own.
type process struct {
	cmd   *exec.Cmd
	ended chan error
}

func (d *demo) startWorker(name string) (*process, error) {
	p := &process{ended: make(chan error, 1)}
	p.cmd = exec.Command(d.Program, "work", "-db", d.file(), "-log", d.log(name), "-claude-key", "", "-ipfs", d.ipfs.URL, "-rpc", d.chain.URL,
		"-contract", d.chain.Contract, "-key", d.chain.KeyRef, "-slots", "20", "-upload-slots", "16")
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p, nil
}

// kill ends the process as a crash would.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := <-p.ended; !errors.As(err, &exit) {
		return err
	}
	return nil
}

// stop asks the process to end, and says how it did.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the worker did not end within a minute"), p.kill())
	}
}

// work lets a worker work, kills it when a third of the uploads are done and others under way, and lets another finish.
func (d *demo) work(ctx context.Context) error {
	first, err := d.startWorker("worker-1")
	if err != nil {
		return err
	}
	d.killed = strconv.Itoa(first.cmd.Process.Pid)
	err = d.until(ctx, first, func(s standing) (bool, error) {
		done, err := d.completed(ctx, stages.Uploading)
		over := done > 0 && s.waiting+s.running == 0 // a quick machine: the worker has nothing left in its hands
		return over || 3*done >= d.Conversations && s.running > 0, err
	})
	if err != nil {
		return errors.Join(err, first.kill())
	}
	if err := first.kill(); err != nil {
		return err
	}
	s, err := d.look(ctx)
	if err != nil {
		return err
	}
	d.tell("*** worker %s is killed (SIGKILL), with %d jobs in its hands and %d waiting ***", d.killed, s.running, s.waiting)
	if s.running == 0 {
		d.tell("it had nothing left to do: nothing was interrupted; try again with more --conversations")
	}
	second, err := d.startWorker("worker-2")
	if err != nil {
		return err
	}
	err = d.until(ctx, second, func(s standing) (bool, error) { return s.waiting+s.running == 0, nil })
	if err != nil {
		return errors.Join(err, second.kill())
	}
	if err := second.stop(); err != nil {
		return fmt.Errorf("the second worker did not end well, see %s: %w", d.log("worker-2"), err)
	}
	d.tell("nothing is left to do; worker %d ended when it was asked to", second.cmd.Process.Pid)
	return nil
}

// lookEvery is how often the demo looks how far things are.
const lookEvery = 15 * time.Millisecond

// until waits until things are as they are wanted, or the worker has ended.
func (d *demo) until(ctx context.Context, p *process, wanted func(s standing) (bool, error)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told := time.Now()
	for {
		s, err := d.look(ctx)
		if err != nil {
			return err
		}
		is, err := wanted(s)
		if err != nil || is {
			return err
		}
		if s.dead > 0 {
			return fmt.Errorf("%d jobs are dead: %w; look into %s", s.dead, ErrCheck, d.file())
		}
		if time.Since(told) > 2*time.Second {
			told = time.Now()
			d.tell("waiting %4d  running %3d", s.waiting, s.running)
		}
		select {
		case err := <-p.ended:
			p.ended <- err
			return errors.Join(errors.New("the worker ended by itself"), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
