UPDATE token SET signing_key = 'cc' WHERE id = 't1';
