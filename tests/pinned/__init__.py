"""Questions of every kind and their answers, which a change of the interior must leave as they are."""
