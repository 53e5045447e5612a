// Package demo runs the whole application for real, with processes that are started and killed, and proves at the end by the
// tables, the chain, the IPFS node and every file that all holds.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/devnet"
	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/measure"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
)

// ErrCheck says that the demo ran and that something does not hold.
var ErrCheck = errors.New("a check does not hold")

// Options adjust a demo. The zero value needs Conversations, and Out.
type Options struct {
	Conversations int
	// Folder gets everything. Empty: a new one, which is removed if all holds.
	Folder string
	// Program is the path of this application's program. Empty: the one that runs.
	Program string
	// Budgets lets a budget that was not kept fail the demo; they depend on the machine.
	Budgets bool
	// Seed is that of the texts; 0: by the clock.
	Seed uint64
	Out  io.Writer
}

// blockPeriod is how often the demo's chain makes a block.
const blockPeriod = 100 * time.Millisecond

// hooksAtOnce is how many callers there are.
const hooksAtOnce = 2

type demo struct {
	Options
	began         time.Time
	db            *records.Database
	chain         *devnet.Chain
	ipfs          *devnet.IPFS
	conversations []conversation
	hooks         measure.Hook
	blocked       measure.Hook // those that ran while the file was locked
	locked        bool
	spooled       int // how many events waited when the lock ended
	hooked        sync.Mutex
	killed        string // the process that was killed
	hook          string // the program of the hook
}

// Run runs the demo.
func Run(ctx context.Context, o Options) (err error) {
	d := &demo{Options: o, began: time.Now()}
	if d.Seed == 0 {
		d.Seed = uint64(d.began.UnixNano())
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, d.close()); err == nil && o.Folder == "" { // what went wrong is to be looked at
			err = os.RemoveAll(d.Folder)
		}
	}()
	if err := d.startNodes(ctx); err != nil {
		return err
	}
	if err := d.takeEvents(ctx); err != nil {
		return err
	}
	if err := d.work(ctx); err != nil {
		return err
	}
	return d.prove(ctx)
}

func (d *demo) file() string          { return filepath.Join(d.Folder, "conversations.db") }
func (d *demo) log(who string) string { return filepath.Join(d.Folder, who+".log") }

// prepare makes the folder and the file. The lease is short, so that the demo need not wait a minute for what a killed
// worker held.
func (d *demo) prepare(ctx context.Context) (err error) {
	if d.Folder == "" {
		if d.Folder, err = os.MkdirTemp("", "sluice-conversations-"); err != nil {
			return err
		}
	}
	if d.Program == "" {
		if d.Program, err = os.Executable(); err != nil {
			return err
		}
	}
	if d.hook, err = measure.Build(ctx, d.Folder); err != nil {
		return err
	}
	if d.db, err = records.Prepare(ctx, d.file(), schema.New()); err != nil {
		return err
	}
	presets := stages.Presets()
	for queue, s := range presets {
		s.Lease, s.RecoverInterval = 3*time.Second, 500*time.Millisecond
		presets[queue] = s
	}
	return stages.Ensure(ctx, d.db.Client, presets)
}

func (d *demo) startNodes(ctx context.Context) (err error) {
	d.tell("starting an IPFS node of kubo (built in some two minutes the first time), and a chain with go-ethereum's EVM")
	folder := filepath.Join(d.Folder, "ipfs")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if d.ipfs, err = devnet.StartIPFS(ctx, folder); err != nil {
		return err
	}
	if d.chain, err = devnet.StartChain(ctx, d.Folder, blockPeriod); err != nil {
		return err
	}
	d.tell("IPFS at %s, chain at %s, registry %s, all else in %s; seed %d", d.ipfs.URL, d.chain.URL, d.chain.Contract, d.Folder, d.Seed)
	return nil
}

func (d *demo) close() error {
	var err error
	if d.ipfs != nil {
		err = d.ipfs.Stop()
	}
	if d.chain != nil {
		err = errors.Join(err, d.chain.Stop())
	}
	return errors.Join(err, d.db.Close())
}

// takeEvents lets each message through the hook, as a process of its own. The file is locked for the last fifth.
func (d *demo) takeEvents(ctx context.Context) error {
	m := newMaker(d.Seed)
	for i := range d.Conversations {
		d.conversations = append(d.conversations, m.make(i))
	}
	free := d.Conversations - d.Conversations/5
	if err := d.say(ctx, d.conversations[:free]); err != nil {
		return err
	}
	d.locked = true
	err := measure.Locked(ctx, d.db.Store.DB(), func() error { return d.say(ctx, d.conversations[free:]) })
	if err == nil {
		d.spooled, err = hook.SpoolOf(d.file()).Waiting()
	}
	d.tell("%d conversations, %d messages with a secret each, went through the hook; %d wait in the spool, because the file was locked", d.Conversations, 3*d.Conversations, d.spooled)
	return err
}

// say lets the messages of conversations through the hook.
func (d *demo) say(ctx context.Context, conversations []conversation) error {
	events := make(chan []byte)
	failed := make(chan error, hooksAtOnce)
	var callers sync.WaitGroup
	for range hooksAtOnce {
		callers.Go(func() {
			for event := range events {
				if err := d.takeEvent(ctx, event); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	err := func() error {
		defer close(events)
		for _, c := range conversations {
			for _, event := range c.events {
				select {
				case events <- event:
				case err := <-failed:
					return err
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		return nil
	}()
	callers.Wait()
	select {
	case also := <-failed:
		err = errors.Join(err, also)
	default:
	}
	return err
}

func (d *demo) takeEvent(ctx context.Context, event []byte) error {
	took, taken, err := measure.Run(ctx, d.hook, d.file(), d.log("hook"), event)
	if err != nil {
		return err
	}
	d.hooked.Lock()
	defer d.hooked.Unlock()
	if d.locked {
		d.blocked.Add(took, taken)
	} else {
		d.hooks.Add(took, taken)
	}
	return nil
}

// standing is how far the stages are.
type standing struct{ waiting, running, dead int }

func (d *demo) look(ctx context.Context) (standing, error) {
	waiting, err := hook.SpoolOf(d.file()).Waiting()
	s := standing{waiting: waiting}
	if err != nil {
		return s, err
	}
	for _, queue := range []string{stages.Validation.Name(), stages.Extraction.Name(), stages.Uploading.Name()} {
		depth, err := d.db.Client.Depth(ctx, queue)
		if err != nil {
			return s, err
		}
		s.waiting += depth.Ready + depth.Scheduled + depth.Blocked
		s.running += depth.Claimed
		s.dead += depth.Dead
	}
	return s, nil
}

// completed counts the jobs of a queue that are done.
func (d *demo) completed(ctx context.Context, queue sluice.TypedQueue[stages.Upload]) (n int, err error) {
	err = d.db.Store.DB().QueryRowContext(ctx, "select count(*) from sluice_jobs where queue = ? and state = 'completed'", queue.Name()).Scan(&n)
	return n, err
}

func (d *demo) tell(text string, args ...any) {
	fmt.Fprintf(d.Out, "%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(text, args...))
}
