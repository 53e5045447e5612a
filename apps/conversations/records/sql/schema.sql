-- The application's tables, beside Sluice's in the same file. All texts are sanitized; times are microseconds since 1970, UTC.
create table if not exists conversation (
    id           text primary key,           -- a ULID or a UUID, of the caller
    created_at   integer not null,
    updated_at   integer not null,
    extracted_to integer not null default 0  -- the place of the last message from which learnings were extracted
) strict;

create table if not exists message (
    place           integer primary key autoincrement,
    id              text    not null unique,  -- of the caller, or made here
    conversation_id text    not null references conversation (id),
    event           text    not null,         -- what happened, such as UserPromptSubmit
    role            text    not null,
    content         text    not null,         -- after the rules, and after the validation by AI where that found more
    version         text    not null,         -- of the rules
    created_at      integer not null,
    validated_at    integer                   -- null: not yet validated by AI
) strict;
create index if not exists message_conversation on message (conversation_id, place);
create index if not exists message_to_validate on message (conversation_id, place) where validated_at is null;

create table if not exists sanitization_log (
    id              text primary key,
    conversation_id text    not null,
    message_id      text    not null,
    category        text    not null,         -- the family of what was removed
    rule            text    not null,
    detector        text    not null check (detector in ('rules', 'ai')),
    snippet_hash    text    not null,         -- HMAC-SHA256 by a key that is not in this file
    replacement     text    not null,
    confidence      real    not null,
    created_at      integer not null
) strict;
create index if not exists sanitization_log_conversation on sanitization_log (conversation_id);

create table if not exists learning (
    place              integer primary key autoincrement,
    id                 text    not null unique,
    conversation_id    text    not null,
    category           text    not null,
    title              text    not null,
    content            text    not null,
    confidence         real    not null,
    tags               text    not null,      -- JSON
    source_message_ids text    not null,      -- JSON
    dedupe_hash        text    not null unique,  -- SHA-256 of category:content
    created_at         integer not null
) strict;
create index if not exists learning_conversation on learning (conversation_id);

create virtual table if not exists learning_text using fts5 (title, content, tags, content = 'learning', content_rowid = 'place', tokenize = 'porter unicode61');
create trigger if not exists learning_added after insert on learning begin
    insert into learning_text (rowid, title, content, tags) values (new.place, new.title, new.content, new.tags);
end;

create table if not exists upload (
    learning_id  text primary key,
    status       text    not null check (status in ('ipfs_uploaded', 'tx_signed', 'confirmed')),
    ipfs_cid     text    not null,
    account      text,                        -- who signed
    nonce        integer,
    tx_hash      text,
    raw_tx       blob,                        -- the signed transaction, which may be sent again as it is
    block_number integer,
    created_at   integer not null,
    updated_at   integer not null
) strict;
create unique index if not exists upload_nonce on upload (account, nonce) where nonce is not null;
