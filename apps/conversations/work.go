package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"

	"github.com/sluice-queue/sluice/apps/conversations/hook"
	"github.com/sluice-queue/sluice/apps/conversations/mind"
	"github.com/sluice-queue/sluice/apps/conversations/pipeline"
	"github.com/sluice-queue/sluice/apps/conversations/records"
	"github.com/sluice-queue/sluice/apps/conversations/reference"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/apps/conversations/upload"
	"github.com/sluice-queue/sluice/schema"
)

// claudeAPI is where the vendor's model is.
const claudeAPI = "https://api.anthropic.com"

// workFlags are those of work.
type workFlags struct {
	log, claude, model, hashKey string
	target                      stages.Upload
	options                     pipeline.Options
}

func (f *workFlags) register(flags *flag.FlagSet) {
	key := ""
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		key = "env:ANTHROPIC_API_KEY"
	}
	flags.StringVar(&f.log, "log", "", "the file that gets the log (default: standard error)")
	flags.StringVar(&f.claude, "claude-key", key, "env:NAME or file:PATH of the key of Anthropic's API (default: env:ANTHROPIC_API_KEY if it is set; otherwise rules decide)")
	flags.StringVar(&f.model, "model", mind.DefaultModel, "the model that is asked")
	flags.StringVar(&f.hashKey, "hash-key", "", "env:NAME or file:PATH of the key of the hashes of what was removed")
	flags.StringVar(&f.target.IPFSEndpoint, "ipfs", "", "URL of the RPC interface of an IPFS node; empty: learnings stay here")
	flags.StringVar(&f.target.Chain.RPCURL, "rpc", "", "URL of the RPC interface of a chain")
	flags.StringVar(&f.target.Chain.Contract, "contract", "", "address of the registry on the chain")
	flags.StringVar(&f.target.Chain.PrivateKeyRef, "key", "", "env:NAME or file:PATH of the private key of the account that pays")
	flags.StringVar(&f.options.Monitor, "monitor", "", "loopback address of /metrics, /healthz and /readyz (default: they are not there)")
	flags.IntVar(&f.options.Slots, "slots", 4, "how many jobs run at once")
	flags.IntVar(&f.options.UploadSlots, "upload-slots", 2, "how many of them are uploads")
}

// complete turns the flags into options. Only the hosts that they name may be spoken to.
func (f *workFlags) complete() (pipeline.Options, error) {
	o := f.options
	var endpoints []string
	if f.target.IPFSEndpoint != "" {
		endpoints = append(endpoints, f.target.IPFSEndpoint, f.target.Chain.RPCURL)
		o.Target = &f.target
	}
	var err error
	if o.Approved, err = upload.Approve(endpoints...); err != nil {
		return o, err
	}
	if f.claude != "" {
		key, err := reference.Secret(f.claude)
		if err != nil {
			return o, err
		}
		api, err := upload.Approve(claudeAPI)
		if err != nil {
			return o, err
		}
		o.Mind = mind.NewClaude(key, f.model, claudeAPI, api.Client())
	}
	if f.hashKey != "" {
		key, err := reference.Secret(f.hashKey)
		if err != nil {
			return o, err
		}
		o.HashKey = []byte(key)
	}
	return o, nil
}

func work(ctx context.Context, args []string, _ io.Writer) error {
	var f workFlags
	flags := flag.NewFlagSet("work", flag.ContinueOnError)
	path := hook.FileFlag(flags)
	f.register(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	o, err := f.complete()
	if err != nil {
		return err
	}
	logger, log, err := logFile(f.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	o.Logger = logger
	db, err := records.Open(ctx, *path, schema.New())
	if err != nil {
		return err
	}
	return errors.Join(pipeline.New(db, o).Run(ctx), db.Close())
}
