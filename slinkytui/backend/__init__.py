"""The backend: both clients, the joined picture, the verbs. Never imports textual or rich."""
