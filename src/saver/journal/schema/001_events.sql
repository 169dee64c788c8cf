-- SQLite and PostgreSQL read the same words.
create table campaign (
    id bigint primary key,
    name text not null unique,
    fingerprint text not null,
    setup text not null,
    versions text not null,
    created double precision not null
);
create table event (
    campaign bigint not null references campaign (id),
    seq bigint not null,
    kind text not null,
    trial bigint,
    key text,
    body bytea not null,
    chain bytea not null,
    at double precision not null,
    actor text not null,
    primary key (campaign, seq)
);
create unique index event_key on event (campaign, key) where key is not null;
create unique index event_once on event (campaign, trial, kind)
    where kind in ('asked', 'started', 'told', 'abandoned', 'cancelled');
create index event_trial on event (campaign, trial) where trial is not null;
create table snapshot (
    campaign bigint not null references campaign (id),
    seq bigint not null,
    body bytea not null,
    primary key (campaign, seq)
);
